package catalog

import (
	"context"
	"slices"
	"strconv"
	"strings"
)

// DisableIdleConns makes every query use a new connection. On an older connection the server may still apply the rights that the
// user had at the login.
func (c *Catalog) DisableIdleConns() { c.db.SetMaxIdleConns(-1) }

// isGrantedToUser is the SQL condition for rights that were granted to this user directly. The server does not show rights from
// roles and PUBLIC.
const isGrantedToUser = "BINARY grantee = CONCAT('''', LEFT(CURRENT_USER(), CHAR_LENGTH(CURRENT_USER()) - CHAR_LENGTH(SUBSTRING_INDEX(CURRENT_USER(), '@', -1)) - 1)," +
	" '''@''', SUBSTRING_INDEX(CURRENT_USER(), '@', -1), '''')"

// hasTriggerRight is the condition that the user has TRIGGER on a table. Its arguments are the database, the table and the database
// again. If several grants match a database, the server applies only one of them, so all of them have to include TRIGGER.
const hasTriggerRight = "EXISTS (SELECT 1 FROM information_schema.user_privileges WHERE privilege_type = 'TRIGGER' AND " + isGrantedToUser + ")" +
	" OR EXISTS (SELECT 1 FROM information_schema.table_privileges WHERE privilege_type = 'TRIGGER' AND BINARY table_schema = ? AND BINARY table_name = ? AND " + isGrantedToUser + ")" +
	" OR (SELECT COUNT(DISTINCT table_schema) = SUM(privilege_type = 'TRIGGER') FROM information_schema.schema_privileges" +
	" WHERE ? COLLATE utf8mb4_bin LIKE table_schema ESCAPE CHAR(92) AND " + isGrantedToUser + ")"

// FindTriggerRights returns the given tables on which this user has the right TRIGGER directly, not through a role. On MariaDB, the
// user sees all triggers of these tables.
func (c *Catalog) FindTriggerRights(ctx context.Context, names []Name) (map[Name]bool, error) {
	sees := make(map[Name]bool)
	for part := range slices.Chunk(names, maxTablesPerQuery) {
		var selects []string
		var args []any
		for i, n := range part {
			selects = append(selects, "SELECT "+strconv.Itoa(i)+" FROM DUAL WHERE "+hasTriggerRight)
			args = append(args, n.DB, n.Table, n.DB)
		}
		var found []int
		if err := c.db.SelectContext(ctx, &found, strings.Join(selects, " UNION ALL "), args...); err != nil {
			return nil, err
		}
		for _, i := range found {
			sees[part[i]] = true
		}
	}
	return sees, nil
}
