package segment_test

import (
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/leafsql/leafsql/idgen/segment"
	"github.com/leafsql/leafsql/testutil/idcheck"
	"github.com/leafsql/leafsql/testutil/mysqltest"
)

// Tables with unusual definitions. A table is refused with each setting of the connection or with none, and a
// refused fetch moves no row.
func TestAllocStoreRefusesUnsafeTables(t *testing.T) {
	const key = "biz_tag varchar(128) PRIMARY KEY, "
	type oddTable struct {
		columns string
		options string // options of the table
		maxID   string
		step    string
		want    string // text in the error; "" if ranges are expected
		only    string // name of the only server for the case
	}
	cases := map[string]oddTable{
		"unsigned":         {columns: key + "max_id bigint unsigned, step int unsigned"},
		"unsigned end":     {columns: key + "max_id bigint unsigned, step int", maxID: "9223372036854775800", want: "used up"},
		"unsigned beyond":  {columns: key + "max_id bigint unsigned, step int", maxID: "18446744073709551610", want: "used up"},
		"end":              {columns: key + "max_id bigint, step int", maxID: "9223372036854775800", want: "used up"},
		"huge step":        {columns: key + "max_id bigint, step bigint", step: "2147483648", want: "step is 2147483648"},
		"step 0":           {columns: key + "max_id bigint, step int", step: "0", want: "step is 0"},
		"no step":          {columns: key + "max_id bigint, step int", step: "NULL", want: "step is NULL"},
		"no max_id":        {columns: key + "max_id bigint, step int", maxID: "NULL", want: "max_id is NULL"},
		"negative":         {columns: key + "max_id bigint, step int", maxID: "-5", want: "max_id is -5"},
		"far below":        {columns: key + "max_id bigint, step int", maxID: "-9223372036854775808", want: "max_id is -9223372036854775808"},
		"int":              {columns: key + "max_id int, step int", maxID: "2147483640", want: "of type INT"},
		"unsigned int":     {columns: key + "max_id int unsigned, step int", want: "INT"},
		"float":            {columns: key + "max_id float, step int", maxID: "16777217", want: "of type FLOAT"},
		"double":           {columns: key + "max_id double, step int", want: "of type DOUBLE"},
		"text":             {columns: key + "max_id varchar(20), step int", want: "of type VARCHAR"},
		"decimal":          {columns: key + "max_id decimal(20,2), step int", want: "of type DECIMAL"},
		"check":            {columns: key + "max_id bigint CHECK (max_id < 8), step int", want: "Error "},
		"case":             {columns: "BIZ_TAG varchar(128) PRIMARY KEY, MAX_ID bigint, STEP int"},
		"not transactions": {columns: key + "max_id bigint, step int", options: "ENGINE=MyISAM"},
		"aria":             {columns: key + "max_id bigint, step int", options: "ENGINE=Aria", only: "mariadb"},
		"versioned":        {columns: key + "max_id bigint, step int", options: "WITH SYSTEM VERSIONING", only: "mariadb"},
		"partitioned":      {columns: key + "max_id bigint, step int", options: "PARTITION BY KEY (biz_tag) PARTITIONS 4"},
		"latin1":           {columns: key + "max_id bigint, step int", options: "CHARSET=latin1"},
		"binary":           {columns: "biz_tag varbinary(128) PRIMARY KEY, max_id bigint, step int"},
	}
	for _, server := range mysqltest.Targets(t) {
		for _, params := range []string{"", "sql_mode=%27%27", "sql_mode=%27%27&clientFoundRows=true", "autocommit=0"} {
			db := pool(t, server.Database(t), params)
			plain := pool(t, mysqltest.WithDatabase(server.DSN(), databaseOf(t, db)), "")
			for name, c := range cases {
				t.Run(server.Name+"/"+params+"/"+name, func(t *testing.T) {
					if c.only != "" && c.only != server.Name {
						return
					}
					if name == "versioned" {
						server.SkipUnless(t, "WITH SYSTEM VERSIONING", 100304, 0)
					}
					maxID, step := c.maxID, c.step
					if maxID == "" {
						maxID = "5"
					}
					if step == "" {
						step = "10"
					}
					for _, text := range []string{"DROP TABLE IF EXISTS leaf_alloc", "CREATE TABLE leaf_alloc (" + c.columns + ") " + c.options,
						"INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES ('a', " + maxID + ", " + step + "), ('b', 1, 1)"} {
						if _, err := plain.Exec(text); err != nil {
							t.Fatal(text, err)
						}
					}
					s := segment.NewAllocStore(db, "leaf_alloc")
					before := rowText(t, plain)
					for i := range int64(3) {
						r, err := s.Fetch(t.Context(), segment.Request{Tag: "a", N: 10, Step: 10, Floor: 1})
						switch {
						case c.want == "" && (err != nil || r != (segment.Range{Start: 5 + 10*i, End: 15 + 10*i, Step: 10})):
							t.Fatal(r, err)
						case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || r != segment.Range{}):
							t.Fatal(r, err)
						case c.want != "" && strings.Contains(err.Error(), "1690"):
							t.Fatal(err)
						}
					}
					if after := rowText(t, plain); c.want != "" && after != before {
						t.Fatalf("row after a refused fetch = %s, want %s", after, before)
					}
				})
			}
		}
	}
}

// A tag with two rows, which is possible only without a key.
func TestAllocStoreRefusesTwoRowsOfATag(t *testing.T) {
	for _, server := range mysqltest.Targets(t) {
		for _, params := range []string{"", "sql_select_limit=1"} {
			db := pool(t, server.Database(t), params)
			db.MustExec("CREATE TABLE leaf_alloc (biz_tag varchar(128), max_id bigint, step int)")
			db.MustExec("INSERT INTO leaf_alloc VALUES ('a', 5, 10), ('a', 99, 20)")
			s := segment.NewAllocStore(db, "leaf_alloc")
			for range 2 {
				if r, err := s.Fetch(t.Context(), segment.Request{Tag: "a", N: 20}); !isError[*segment.RowError](err) || r != (segment.Range{}) {
					t.Fatalf("%v %v: Fetch(segment.Request{Tag: \"a\", N: 20}) = %+v, %v, want a *segment.RowError and segment.Range{}", server.Name, params, r, err)
				}
			}
		}
	}
}

// No id is issued twice, whatever a trigger on the table does: the insert id of the UPDATE is 0 then, and the
// written number is read in a transaction.
func TestAllocStoreIsUniqueDespiteTriggers(t *testing.T) {
	for _, server := range mysqltest.Targets(t) {
		for name, c := range map[string]struct {
			trigger string
			refused bool
		}{
			"before":        {"BEFORE UPDATE ON leaf_alloc FOR EACH ROW INSERT INTO log (a) VALUES (1)", false},
			"after":         {"AFTER UPDATE ON leaf_alloc FOR EACH ROW INSERT INTO log (a) VALUES (1), (2)", false},
			"insert id":     {"AFTER UPDATE ON leaf_alloc FOR EACH ROW SET @x = LAST_INSERT_ID(99)", false},
			"insert id old": {"BEFORE UPDATE ON leaf_alloc FOR EACH ROW SET @x = LAST_INSERT_ID(OLD.max_id)", false},
			"other value":   {"BEFORE UPDATE ON leaf_alloc FOR EACH ROW SET NEW.max_id = NEW.max_id + 5", true},
			"old value":     {"BEFORE UPDATE ON leaf_alloc FOR EACH ROW SET NEW.max_id = OLD.max_id", true},
		} {
			t.Run(server.Name+"/"+name, func(t *testing.T) {
				for _, params := range []string{"", "clientFoundRows=true&sql_mode=%27%27"} {
					db := pool(t, server.Database(t), params)
					s := allocStore(t, db, "leaf_alloc")
					for _, text := range []string{"CREATE TABLE log (id INT AUTO_INCREMENT PRIMARY KEY, a INT) AUTO_INCREMENT=7", "CREATE TRIGGER tr " + c.trigger} {
						db.MustExec(text)
					}
					if err := s.Ensure(t.Context(), "a", 1, 10); err != nil {
						t.Fatal(err)
					}
					var ids idcheck.Collector
					r := ids.Recorder()
					times := 20
					if c.refused {
						times = 2
					}
					for range times {
						got, err := s.Fetch(t.Context(), segment.Request{Tag: "a", N: 10, Step: 10, Floor: 1})
						if c.refused != (err != nil) {
							t.Fatalf("Fetch(segment.Request{Tag: \"a\", N: 10, Step: 10, Floor: 1}) = %+v, %v, want c.refused = %v", got, err, err != nil)
						}
						if err == nil {
							r.Add(got.Start, int(got.End-got.Start))
						}
					}
					if c.refused {
						continue
					}
					report := ids.Verify(t)
					row, err := s.Row(t.Context(), "a")
					if err != nil || row.MaxID != report.Max+1 || report.Missing > 10 { // the first range is lost
						t.Fatalf("Row(\"a\") = %+v, %v with report = %v, want MaxID = %v, report.Missing at most 10 and no error", row, err, report, report.Max+1)
					}
				}
			})
		}
	}
}

// The table can store tags with any letters, independently of the database's character set. It is queried
// before it is created: the right to CREATE is needed only once.
func TestAllocStoreCreatesItsTable(t *testing.T) {
	ctx := t.Context()
	for _, server := range mysqltest.Targets(t) {
		t.Run(server.Name, func(t *testing.T) {
			dsn := server.Database(t)
			db := pool(t, dsn, "multiStatements=true")
			name := databaseOf(t, db)
			db.MustExec("ALTER DATABASE " + name + " CHARACTER SET latin1")
			s := allocStore(t, db, "leaf_alloc")
			for _, tag := range []string{"订单", "😀", "Orders"} {
				if err := s.Ensure(ctx, tag, 1, 10); err != nil {
					t.Fatal(err)
				}
				fetch(t, s, segment.Request{Tag: tag, N: 10})
			}
			// On most servers, Leaf's own table treats these tags as equal too. They share a row.
			if err := s.Ensure(ctx, "ORDERS", 1, 10); err != nil {
				t.Fatal(err)
			}
			if r := fetch(t, s, segment.Request{Tag: "ORDERS", N: 10}); r.Start != 11 {
				t.Fatalf("fetch(s, segment.Request{Tag: \"ORDERS\", N: 10}) = %+v, want Start = 11", r)
			}

			user := "u" + name[len(name)-12:]
			db.MustExec("CREATE USER " + user + "; GRANT SELECT, UPDATE ON " + name + ".leaf_alloc TO " + user)
			t.Cleanup(func() { db.Exec("DROP USER " + user) })
			poor := segment.NewAllocStore(pool(t, strings.Replace(dsn, "root@", user+"@", 1), ""), "leaf_alloc")
			if err := poor.Create(ctx); err != nil {
				t.Fatal(err)
			}
			fetch(t, poor, segment.Request{Tag: "订单", N: 10})
			db.MustExec("DROP TABLE leaf_alloc")
			if err := poor.Create(ctx); err == nil || !strings.HasPrefix(err.Error(), "leafsql: create `leaf_alloc`: ") || !strings.Contains(err.Error(), "1142") {
				t.Fatal(err)
			}
		})
	}
}

// Many processes start concurrently.
func TestAllocStoreIsCreatedConcurrently(t *testing.T) {
	for _, server := range mysqltest.Targets(t) {
		dsn := server.Database(t)
		var wg sync.WaitGroup
		for range 12 {
			s := segment.NewAllocStore(pool(t, dsn, ""), "leaf_alloc")
			wg.Go(func() {
				if err := errors.Join(s.Create(t.Context()), s.Ensure(t.Context(), "a", 1, 10)); err != nil {
					t.Error(server.Name, err)
				}
			})
		}
		wg.Wait()
	}
}

// TestAllocStoreRefusesARowOfSeveralStores: a row of one store of several gives no ids, even if it has a step, and
// even to a process that drew from it before.
func TestAllocStoreRefusesARowOfSeveralStores(t *testing.T) {
	for _, server := range mysqltest.Targets(t) {
		t.Run(server.Name, func(t *testing.T) {
			db := pool(t, server.Database(t), "")
			db.MustExec("CREATE TABLE leaf_alloc (biz_tag varchar(128) PRIMARY KEY, max_id bigint, step int, description varchar(256))")
			db.MustExec("INSERT INTO leaf_alloc VALUES ('a', 5, 10, 'mine')")
			s := segment.NewAllocStore(db, "leaf_alloc")
			fetch(t, s, segment.Request{Tag: "a", N: 10, Step: 10})
			db.MustExec("UPDATE leaf_alloc SET step = 0, max_id = 100000001, description = 'leafsql: store 2 of 3, blocks of 100000000, step 10, life ab, set cd'")
			for range 2 {
				if r, err := s.Fetch(t.Context(), segment.Request{Tag: "a", N: 10, Step: 10}); err == nil || !strings.Contains(err.Error(), "store 2 of 3") {
					t.Errorf("Fetch(segment.Request{Tag: \"a\", N: 10, Step: 10}) = %+v, %v, want an error with \"store 2 of 3\"", r, err)
				}
				db.MustExec("UPDATE leaf_alloc SET step = 10")
			}
		})
	}
}
