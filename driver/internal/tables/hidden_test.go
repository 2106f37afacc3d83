package tables

import (
	"database/sql"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/leafsql/leafsql/driver/internal/catalog"
	"github.com/leafsql/leafsql/driver/internal/insert"
	"github.com/leafsql/leafsql/driver/internal/rules"
	"github.com/leafsql/leafsql/testutil/mysqltest"
)

// TestTriggersMayBeHiddenByServerBug: on versions with the bug MDEV-36026, a table that shows no trigger may have hidden triggers,
// unless the user has TRIGGER on it. Other versions hide no triggers.
func TestTriggersMayBeHiddenByServerBug(t *testing.T) {
	dsn := mysqltest.TargetOf(t, mysqltest.MariaDB).Database(t)
	root, err := sql.Open("mysql", dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	cfg, err := mysql.ParseDSN(dsn)
	if err != nil {
		t.Fatal(err)
	}
	user := "h" + cfg.DBName[len(cfg.DBName)-12:]
	for _, text := range []string{"CREATE TABLE none (id BIGINT PRIMARY KEY)", "CREATE TABLE before_it (id BIGINT PRIMARY KEY)", "CREATE TABLE granted (id BIGINT PRIMARY KEY)",
		"CREATE TRIGGER tr BEFORE INSERT ON before_it FOR EACH ROW SET @x = 1",
		"CREATE USER " + user + " IDENTIFIED BY 'pw'", "GRANT SELECT, INSERT, UPDATE, DELETE ON none TO " + user, "GRANT SELECT, INSERT, UPDATE, DELETE ON before_it TO " + user,
		"GRANT INSERT, TRIGGER ON granted TO " + user} {
		if _, err := root.Exec(text); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
	}
	defer root.Exec("DROP USER " + user)
	cfg.User, cfg.Passwd = user, "pw"
	pool, err := sql.Open("mysql", cfg.FormatDSN())
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	set := New(rules.Config{}, catalog.New(pool), nil, nil)
	names := []catalog.Name{{DB: cfg.DBName, Table: "none"}, {DB: cfg.DBName, Table: "before_it"}, {DB: cfg.DBName, Table: "granted"}}
	for _, tt := range []struct {
		settings insert.Settings
		hidden   bool
	}{{insert.Settings{MariaDB: true, Version: 110405}, true}, {insert.Settings{MariaDB: true, Version: 110406}, false}, {insert.Settings{Version: 110405}, false}} {
		set.Server.Settings = tt.settings
		seen, err := set.readTables(t.Context(), names)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			if want := tt.hidden && name.Table != "granted" && len(seen[name].Triggers) == 0; seen[name] == nil || seen[name].TriggersHidden != want {
				t.Errorf("%+v: hidden triggers of %s = %v, want %v", tt.settings, name, !want, want)
			}
		}
	}
}
