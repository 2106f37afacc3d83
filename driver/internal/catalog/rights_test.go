package catalog

import (
	"database/sql"
	"slices"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/leafsql/leafsql/testutil/mysqltest"
)

// TestTriggerRights: whoever is said to have TRIGGER sees a table's trigger, and only grants of the user itself say so.
func TestTriggerRights(t *testing.T) {
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
		{[]string{"ROLE"}, false}, // it has, and the server does not tell
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
		theirs.User, theirs.Passwd = user, "pw"
		pool, err := sql.Open("mysql", theirs.FormatDSN())
		if err != nil {
			t.Fatal(err)
		}
		defer pool.Close()
		c, name := New(pool), Name{db, "t"}
		rights, err := c.TriggerRights(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		tables, err := c.Tables(t.Context(), []Name{name})
		if err != nil || tables[name] == nil {
			t.Fatal(tables, err)
		}
		if rights.On(name) != tt.has || tt.has && len(tables[name].Triggers) == 0 {
			t.Errorf("%q: TRIGGER %v, and %d triggers are shown", tt.grants, rights.On(name), len(tables[name].Triggers))
		}
	}
}

func TestLike(t *testing.T) {
	for _, tt := range []struct {
		pattern, name string
		folds, want   bool
	}{
		{"shop", "shop", false, true}, {"Shop", "shop", false, false}, {"Shop", "shop", true, true}, {"shop", "shop1", false, false},
		{"s_p", "shp", false, true}, {`s\_p`, "shp", false, false}, {`s\_p`, "s_p", false, true}, {"s%", "shop", false, true}, {`s\%`, "shop", false, false}, {"s.op", "shop", false, false},
	} {
		if like(tt.pattern, tt.name, tt.folds) != tt.want {
			t.Errorf("%q matches %q: %v", tt.pattern, tt.name, !tt.want)
		}
	}
}
