package catalog

import (
	"context"
	"slices"
	"strconv"
	"strings"
)

// LogInAnew makes a new connection for each question: the server may hold the rights of one as they were at its login.
func (c *Catalog) LogInAnew() { c.db.SetMaxIdleConns(-1) }

// ofUser is the condition of rows that have a right of this user itself. What roles and PUBLIC add the server does not show.
const ofUser = "BINARY grantee = CONCAT('''', LEFT(CURRENT_USER(), CHAR_LENGTH(CURRENT_USER()) - CHAR_LENGTH(SUBSTRING_INDEX(CURRENT_USER(), '@', -1)) - 1)," +
	" '''@''', SUBSTRING_INDEX(CURRENT_USER(), '@', -1), '''')"

// mayTrigger is the condition of a table, by its database, its name and its database again, on which the user has TRIGGER. Of
// several grants on its database one alone counts, and which one it is depends on their patterns: TRIGGER has to be in all of them.
const mayTrigger = "EXISTS (SELECT 1 FROM information_schema.user_privileges WHERE privilege_type = 'TRIGGER' AND " + ofUser + ")" +
	" OR EXISTS (SELECT 1 FROM information_schema.table_privileges WHERE privilege_type = 'TRIGGER' AND BINARY table_schema = ? AND BINARY table_name = ? AND " + ofUser + ")" +
	" OR (SELECT COUNT(DISTINCT table_schema) = SUM(privilege_type = 'TRIGGER') FROM information_schema.schema_privileges" +
	" WHERE ? COLLATE utf8mb4_bin LIKE table_schema ESCAPE CHAR(92) AND " + ofUser + ")"

// SeesTriggers returns those of some tables on which this user has the right TRIGGER by its own grants, and so sees all triggers,
// on MariaDB.
func (c *Catalog) SeesTriggers(ctx context.Context, names []Name) (map[Name]bool, error) {
	sees := make(map[Name]bool)
	for part := range slices.Chunk(names, perQuery) {
		var selects []string
		var args []any
		for i, n := range part {
			selects = append(selects, "SELECT "+strconv.Itoa(i)+" FROM DUAL WHERE "+mayTrigger)
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
