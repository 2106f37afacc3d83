package catalog

import (
	"database/sql"
	"math"
	"reflect"
	"testing"

	"github.com/leafsql/leafsql/testutil/mysqltest"
)

// TestColumnsOfIndexesStayApart: the columns of several indexes stay apart, in their order.
func TestColumnsOfIndexesStayApart(t *testing.T) {
	for _, target := range mysqltest.Targets(t) {
		t.Run(target.Name, func(t *testing.T) {
			dsn := target.Database(t)
			db, err := sql.Open("mysql", dsn)
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			if _, err := db.Exec("CREATE TABLE parts (z INT, y INT, x INT, PRIMARY KEY (z, y), KEY other (x), UNIQUE both_of (x, y))"); err != nil {
				t.Fatal(err)
			}
			var name Name
			if err := db.QueryRow("SELECT DATABASE(), 'parts'").Scan(&name.DB, &name.Table); err != nil {
				t.Fatal(err)
			}
			tables, err := New(db).Tables(t.Context(), []Name{name})
			if err != nil {
				t.Fatal(err)
			}
			got := make(map[string]Index)
			for _, x := range tables[name].Indexes {
				got[x.Name] = x
			}
			want := map[string]Index{"PRIMARY": {"PRIMARY", true, []string{"z", "y"}}, "other": {"other", false, []string{"x"}}, "both_of": {"both_of", true, []string{"x", "y"}}}
			if !reflect.DeepEqual(got, want) {
				t.Errorf("indexes are\n %v\nwant\n %v", got, want)
			}
			if alone, together := tables[name].IsUnique("y"); alone || !together {
				t.Errorf("IsUnique(y) = %v and %v with z, want false and true", alone, together)
			}
		})
	}
}

func TestTypeHasHighestValue(t *testing.T) {
	for _, tt := range []struct {
		typ     string
		highest int64
		integer bool
	}{
		{"bigint(20)", math.MaxInt64, true},
		{"bigint(20) unsigned", math.MaxInt64, true},
		{"bigint unsigned", math.MaxInt64, true},
		{"int(11)", math.MaxInt32, true},
		{"int unsigned", math.MaxUint32, true},
		{"int(10) unsigned zerofill", math.MaxUint32, true},
		{"mediumint", 8388607, true},
		{"smallint(5) unsigned", 65535, true},
		{"tinyint(1)", 127, true},
		{"varchar(20)", math.MaxInt64, false},
		{"varchar(4)", 9999, false},
		{"char(19)", math.MaxInt64, false},
		{"decimal(20,0)", math.MaxInt64, false},
		{"decimal(10,2)", 99999999, false},
		{"decimal(2,2)", 0, false},
		{"double", 0, false},
		{"binary(16)", 0, false},
		{"datetime", 0, false},
		{"uuid", 0, false},
	} {
		highest, integer := (&Column{Type: tt.typ}).Highest()
		if highest != tt.highest || integer != tt.integer {
			t.Errorf("highest value of %q = %d, integer %v; want %d, %v", tt.typ, highest, integer, tt.highest, tt.integer)
		}
	}
}
