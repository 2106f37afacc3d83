package servertest

import (
	"database/sql"
	"errors"
	"fmt"
	"reflect"
	"testing"

	"github.com/leafsql/leafsql/driver"
	"github.com/leafsql/leafsql/internal/inspect"
	"github.com/leafsql/leafsql/testutil/mysqltest"
)

func inspected(t *testing.T, dsn string, tags ...string) *inspect.Inspection {
	t.Helper()
	i, err := inspect.Server(t.Context(), dsn, tags)
	if err != nil {
		t.Fatal(err)
	}
	return i
}

// TestInspectReportsWhatStatementsFind: an inspection reports for each table what a statement would find.
func TestInspectReportsWhatStatementsFind(t *testing.T) {
	for _, target := range mysqltest.Targets(t) {
		t.Run(target.Name, func(t *testing.T) {
			dsn := target.Database(t)
			openOn(t, dsn, "leafTables=none",
				"CREATE TABLE orders (id INT UNSIGNED AUTO_INCREMENT PRIMARY KEY, a INT)",
				"CREATE TABLE order_1 (id BIGINT PRIMARY KEY, a INT)",
				"CREATE TABLE order_old (id BIGINT PRIMARY KEY, a INT)",
				"CREATE TABLE order_text (id VARCHAR(20) PRIMARY KEY, a INT)",
				"CREATE TABLE pairs (x BIGINT, y BIGINT, PRIMARY KEY (x, y))",
				"CREATE TABLE loose (n BIGINT, a INT)",
				"CREATE TABLE events (id BIGINT, n BIGINT, PRIMARY KEY (id, n))",
				"CREATE TABLE uuids (id BINARY(16) PRIMARY KEY)",
				"CREATE TABLE other (id BIGINT AUTO_INCREMENT PRIMARY KEY)",
				"CREATE VIEW order_2 AS SELECT * FROM orders")
			i := inspected(t, dsn+"?leafWorker=static(7)&leafTables=orders,order_*,!order_old,pairs,loose:n,events:id:snowflake,uuids::uuid7,nosuch", "a tag of others")
			want := map[string]string{
				"events":  "snowflake  id bigint 9223372036854775807 true",
				"loose":   "segment loose n bigint 9223372036854775807 false",
				"order_1": "segment order_* id bigint 9223372036854775807 true",
				"orders":  "segment orders id int unsigned 4294967295 true AUTO_INCREMENT",
				"uuids":   "uuid7  id binary 9223372036854775807 true",
			}
			got := make(map[string]string)
			for _, info := range i.Tables {
				if info.Err == nil {
					got[info.Table] = describeInfo(info)
				}
			}
			if !reflect.DeepEqual(got, want) {
				t.Errorf("tables\n got %v\nwant %v", got, want)
			}
			if fmt.Sprint(i.Missing) != "[nosuch]" {
				t.Errorf("Missing = %v, want [nosuch]", i.Missing)
			}
			for _, info := range i.Tables {
				var unfit *driver.RefusedError
				if (info.Table == "pairs") != errors.As(info.Err, &unfit) {
					t.Errorf("%s: error %v, want one for the table pairs only", info.Table, info.Err)
				}
			}
			if i.MariaDB != (target.Name == "mariadb") || i.Version < 50000 {
				t.Errorf("Version = %d, MariaDB = %v; want the version of %s", i.Version, i.MariaDB, target.Name)
			}

			db := i.Tables[0].Database
			auto := inspected(t, dsn, "orders", db+".order_1", "order_text", "nosuch")
			if len(auto.Tables) != 2 || fmt.Sprint(auto.Missing) != "[nosuch order_text]" {
				t.Errorf("tables without rules = %+v, missing %v; want two tables, missing [nosuch order_text]", auto.Tables, auto.Missing)
			}
			body := inspect.Program{Database: db, Body: "BEGIN INSERT INTO orders (a) VALUES (1); INSERT INTO other VALUES (); REPLACE `" + db + "`.`order_1` VALUES (1, 1); END"}
			if got := i.Writes(body); !reflect.DeepEqual(got, []string{db + ".orders", db + ".order_1"}) {
				t.Errorf("Writes() = %v, want orders and order_1", got)
			}
		})
	}
}

// describeInfo returns a description of i without display widths, which only MariaDB has.
func describeInfo(i inspect.Table) string {
	typ, width := "", false
	for _, r := range i.Type {
		width = r == '(' || width && r != ')'
		if !width && r != ')' {
			typ += string(r)
		}
	}
	s := fmt.Sprintf("%s %s %s %s %d %v", i.Kind, i.Tag, i.Column, typ, i.Highest, i.Indexed)
	if i.AutoIncrement {
		s += " AUTO_INCREMENT"
	}
	return s
}

// TestInspectAgreesWithInserts: an inspection reports exactly those tables as unfit for which INSERTs are refused.
func TestInspectAgreesWithInserts(t *testing.T) {
	dsn := mysqltest.Database(t)
	_, leaf := openOn(t, dsn, "leafTables=pairs,wide:id", allocTable, row("pairs", 1, 10), row("wide", 1, 10),
		"CREATE TABLE pairs (x BIGINT, y BIGINT, PRIMARY KEY (x, y))", "CREATE TABLE wide (id DOUBLE PRIMARY KEY)")
	for _, info := range inspected(t, dsn+"?leafTables=pairs,wide:id").Tables {
		_, err := leaf.Exec("INSERT INTO " + info.Table + " VALUES ()")
		if err == nil || info.Err == nil || err.Error() != info.Err.Error() {
			t.Errorf("%s: error of INSERT and of inspection differ, want the same:\n%v\n%v", info.Table, err, info.Err)
		}
	}
	var n int
	if err := func() error {
		db, err := sql.Open("mysql", dsn)
		if err != nil {
			return err
		}
		defer db.Close()
		return db.QueryRow("SELECT SUM(max_id) FROM leaf_alloc").Scan(&n)
	}(); err != nil || n != 2 {
		t.Errorf("sum of max_id = %d, error %v; want 2, since no id was drawn", n, err)
	}
}
