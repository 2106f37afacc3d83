package servertest

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/leafsql/leafsql/driver"
	"github.com/leafsql/leafsql/testutil/mysqltest"
)

// TestRulesApplyToDatabaseInUse: a pool without a database in its DSN creates one, and rules without a database apply to
// the database in use. Two databases share only counters that a rule names.
func TestRulesApplyToDatabaseInUse(t *testing.T) {
	for _, target := range mysqltest.Targets(t) {
		t.Run(target.Name, func(t *testing.T) {
			ids := target.Database(t)
			in := "&leafAllocTable=" + databaseOf(t, ids)
			for _, tt := range []struct {
				params, tags string
			}{
				{"leafTables=*" + in + ".alloc_any", "one.t two.t"},
				{"leafTables=t" + in + ".alloc_t", "one.t two.t"},
				{"leafTables=t*&leafStore=" + strings.ReplaceAll(ids, "/", "%2F"), "one.t* two.t*"},
				{"leafTables=t:id:segment(both)" + in + ".alloc_both", "both"},
				{"leafTables=*.t" + in + ".alloc_all", "t"},
			} {
				one, two := databaseOf(t, target.Database(t)), databaseOf(t, target.Database(t))
				plain, leaf := openOn(t, target.DSN(), tt.params+"&leafCreate=true", "DROP DATABASE "+one, "DROP DATABASE "+two)
				leaf.SetMaxOpenConns(1)
				for _, text := range []string{
					"CREATE DATABASE one", "CREATE DATABASE two", "CREATE TABLE one.t (id BIGINT PRIMARY KEY, a INT)", "CREATE TABLE two.t (id BIGINT PRIMARY KEY, a INT)",
					"USE one", "INSERT INTO t (a) VALUES (1)", "INSERT INTO t (a) SELECT 2", "INSERT INTO t (id, a) VALUES (100, 3)", "INSERT INTO t (a) VALUES (4)",
					"USE two", "INSERT INTO t (a) VALUES (1)", "INSERT INTO one.t (a) VALUES (5)",
				} {
					mustExec(t, leaf, strings.NewReplacer("one", one, "two", two).Replace(text))
				}
				var above int
				if err := plain.QueryRow("SELECT COUNT(*) FROM " + one + ".t WHERE id > 100 AND a > 3").Scan(&above); err != nil || above != 2 {
					t.Errorf("%s: %d ids above the explicit key, error %v; want 2", tt.params, above, err)
				}
				stats, err := driver.StatsOf(leaf)
				if err != nil {
					t.Fatal(err)
				}
				var tags []string
				for _, tag := range stats.Tags {
					tags = append(tags, strings.NewReplacer(one, "one", two, "two").Replace(tag.Tag))
				}
				slices.Sort(tags)
				if got := strings.Join(tags, " "); got != tt.tags {
					t.Errorf("%s: tags %s, want %s", tt.params, got, tt.tags)
				}
			}
		})
	}
}

// TestWithoutCounterOnlyFilledInsertsFail: if no counter is named, all statements run except INSERTs that
// need one.
func TestWithoutCounterOnlyFilledInsertsFail(t *testing.T) {
	for _, target := range mysqltest.Targets(t) {
		t.Run(target.Name, func(t *testing.T) {
			for _, params := range []string{"leafTables=*&leafCreate=true", "leafTables=t", "leafTables=t&leafCreate=true", "leafTables=t:id:sequence(s)", "leafCreate=true", "leafTables=auto"} {
				name := databaseOf(t, target.Database(t))
				_, leaf := openOn(t, target.DSN(), params, "DROP DATABASE "+name)
				leaf.SetMaxOpenConns(1)
				mustExec(t, leaf, "CREATE DATABASE "+name, "USE "+name, "CREATE TABLE t (id BIGINT PRIMARY KEY, a INT)", "CREATE TABLE u (a INT)", "INSERT INTO u VALUES (1)", "UPDATE t SET a = 1")
				for _, text := range []string{"INSERT INTO t (a) VALUES (1)", "INSERT INTO " + name + ".t (a) SELECT 1"} {
					err := refused(t, leaf, "leafAllocTable=DATABASE.leaf_alloc", text)
					var refusal *driver.RefusedError
					if !errors.As(err, &refusal) || refusal.Table != name+".t" {
						t.Errorf("%s: %s: error %T %v, want a refusal for %s", params, text, err, err, name+".t")
					}
				}
				var rows int
				if err := leaf.QueryRow("SELECT COUNT(*) FROM t").Scan(&rows); err != nil || rows != 0 {
					t.Errorf("%s: %d rows, error %v; want 0", params, rows, err)
				}
			}
		})
	}
}

// TestUUIDsNeedNoCounter: UUIDs need no counter.
func TestUUIDsNeedNoCounter(t *testing.T) {
	for _, target := range mysqltest.Targets(t) {
		name := databaseOf(t, target.Database(t))
		_, leaf := openOn(t, target.DSN(), "leafTables=t::uuid7", "CREATE TABLE "+name+".t (id CHAR(36) PRIMARY KEY, a INT)")
		leaf.SetMaxOpenConns(1)
		mustExec(t, leaf, "USE "+name, "INSERT INTO t (a) VALUES (1)")
	}
}
