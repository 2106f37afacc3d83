package catalog

import (
	"database/sql"
	"slices"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/leafsql/leafsql/testutil/mysqltest"
)

// TestOnlyDirectTriggerGrantsCount: a user with a reported TRIGGER right sees a table's trigger, and only direct grants count.
func TestOnlyDirectTriggerGrantsCount(t *testing.T) {
	target := mysqltest.TargetOf(t, mysqltest.MariaDB)
	dsn := target.Database(t)
	root, err := sql.Open("mysql", dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	cfg, err := mysql.ParseDSN(dsn)
	if err != nil {
		t.Fatal(err)
	}
	db := cfg.DBName // it has a _, which is a wildcard in a grant
	do := func(text string) {
		t.Helper()
		if _, err := root.Exec(text); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
	}
	do("CREATE TABLE t (id INT PRIMARY KEY)")
	do("CREATE TRIGGER tr BEFORE INSERT ON t FOR EACH ROW SET @x = 1")
	escaped, other := strings.ReplaceAll(db, "_", `\_`), strings.Replace(db, "_", "%", 1)
	for i, tt := range []struct {
		grants []string
		has    bool
	}{
		{nil, false},
		{[]string{"TRIGGER ON *.*"}, true},
		{[]string{"TRIGGER ON `" + db + "`.*"}, true},
		{[]string{"TRIGGER ON `" + escaped + "`.*"}, true},
		{[]string{"TRIGGER ON `" + other + "`.*"}, true},
		{[]string{"TRIGGER ON t"}, true},
		{[]string{"ALL ON *.*"}, true},
		{[]string{"TRIGGER ON `" + other + "`.*", "SELECT ON `" + escaped + "`.*"}, false},
		{[]string{"TRIGGER ON `" + db + "_`.*"}, false},
		{[]string{"TRIGGER ON `" + strings.ToUpper(db) + "`.*"}, false},
		{[]string{"TRIGGER ON `" + strings.Replace(db, "_", `\%`, 1) + "`.*"}, false},
		{[]string{"TRIGGER ON `" + strings.Replace(db, "_", ".", 1) + "`.*"}, false},
		{[]string{"ROLE"}, false}, // the user has the right, but the server does not show it
	} {
		user := "u" + db[len(db)-8:] + string(rune('a'+i))
		do("CREATE USER " + user + " IDENTIFIED BY 'pw'")
		defer do("DROP USER " + user)
		if slices.Equal(tt.grants, []string{"ROLE"}) {
			do("CREATE ROLE role_" + user)
			defer do("DROP ROLE role_" + user)
			do("GRANT TRIGGER ON t TO role_" + user)
			do("GRANT role_" + user + " TO " + user)
			do("SET DEFAULT ROLE role_" + user + " FOR " + user)
			tt.grants = nil
		}
		for _, grant := range append(tt.grants, "INSERT ON t") {
			do("GRANT " + grant + " TO " + user)
		}
		theirs := cfg.Clone()
		theirs.User, theirs.Passwd, theirs.Params = user, "pw", map[string]string{"sql_mode": []string{"''", "'NO_BACKSLASH_ESCAPES'"}[i%2]}
		pool, err := sql.Open("mysql", theirs.FormatDSN())
		if err != nil {
			t.Fatal(err)
		}
		defer pool.Close()
		c, name := New(pool), Name{DB: db, Table: "t"}
		sees, err := c.FindTriggerRights(t.Context(), []Name{{DB: db, Table: "elsewhere"}, name})
		if err != nil {
			t.Fatal(err)
		}
		tables, err := c.Tables(t.Context(), []Name{name})
		if err != nil || tables[name] == nil {
			t.Fatalf("tables = %v, error %v; want %s", tables, err, name)
		}
		if sees[name] != tt.has || tt.has && len(tables[name].Triggers) == 0 {
			t.Errorf("%q: TRIGGER right = %v, want %v; %d triggers are visible", tt.grants, sees[name], tt.has, len(tables[name].Triggers))
		}
	}
}
