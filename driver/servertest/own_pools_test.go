package servertest

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leafsql/leafsql/driver"
	"github.com/leafsql/leafsql/testutil/idcheck"
	"github.com/leafsql/leafsql/testutil/mysqltest"
	"github.com/leafsql/leafsql/testutil/netfault"
	"github.com/leafsql/leafsql/testutil/stopwatch"
)

// TestInternalPoolsLeaveDemotedPrimary: a balancer keeps sessions to a server that is demoted.
// The application's pool moves to the new primary. Internal pools must move as well, before
// a caller gets an error.
func TestInternalPoolsLeaveDemotedPrimary(t *testing.T) {
	var servers [2]*mysqltest.Server
	var roots [2]*sql.DB
	for i := range servers {
		servers[i] = mysqltest.Run(t, mysqltest.Config{Kind: mysqltest.MariaDB})
		root, err := sql.Open("mysql", servers[i].DSN("")+"?multiStatements=true")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { root.Close() })
		if _, err := root.Exec("CREATE USER app@'%'; GRANT ALL ON shop.* TO app@'%'; CREATE DATABASE shop; USE shop; " + allocTable + "; " + row("t", 1, 20) + "; " + tableT); err != nil {
			t.Fatal(err)
		}
		roots[i] = root
	}
	proxy := netfault.Start(t, servers[0].Addr())
	leaf, err := sql.Open(driver.Name, "app@tcp("+proxy.Addr()+")/shop?leafTables=t")
	if err != nil {
		t.Fatal(err)
	}
	defer leaf.Close()
	leaf.SetMaxIdleConns(-1) // a new connection for each statement

	var ids idcheck.Collector
	r := ids.Recorder()
	for i := range 10 {
		r.Add(insertID(t, leaf, "INSERT INTO t (a) VALUES (?)", i), 1)
	}
	if _, err := roots[0].Exec("SET GLOBAL read_only = 1"); err != nil {
		t.Fatal(err)
	}
	var maxID int
	if err := roots[0].QueryRow("SELECT max_id FROM shop.leaf_alloc").Scan(&maxID); err != nil {
		t.Fatal(err)
	}
	if _, err := roots[1].Exec("UPDATE shop.leaf_alloc SET max_id = ?", maxID); err != nil {
		t.Fatal(err)
	}
	proxy.Switch(servers[1].Addr())
	for i := range 100 {
		r.Add(insertID(t, leaf, "INSERT INTO t (a) VALUES (?)", 100+i), 1)
	}
	ids.Verify(t)
	var rows int
	if err := roots[1].QueryRow("SELECT COUNT(*) FROM shop.t").Scan(&rows); err != nil || rows != 100 {
		t.Errorf("%d rows on the new primary, error %v; want 100", rows, err)
	}
}

// TestInternalPoolsIgnoreApplicationSettings: ranges are committed and counted whatever the
// application sets for its connections.
func TestInternalPoolsIgnoreApplicationSettings(t *testing.T) {
	for _, params := range []string{"autocommit=0", "clientFoundRows=true", "rejectReadOnly=true", "sql_select_limit=1", "sql_safe_updates=1"} {
		plain, leaf := open(t, "leafTables=t&"+params, allocTable, row("t", 1, 20), tableT)
		for i := range 50 {
			if id := insertID(t, leaf, "INSERT INTO t (a) VALUES (?)", i); id != int64(i)+1 {
				t.Errorf("%s: LastInsertId() = %d, want %d", params, id, i+1)
			}
		}
		var maxID int
		if err := plain.QueryRow("SELECT max_id FROM leaf_alloc").Scan(&maxID); err != nil || maxID <= 50 {
			t.Errorf("%s: max_id = %d, error %v; want more than 50", params, maxID, err)
		}
	}
}

// TestRowOfLeafAllocIsCommittedUnderCompletionType: a server that opens a transaction, or closes the
// connection, after each COMMIT and ROLLBACK commits what internal connections write.
func TestRowOfLeafAllocIsCommittedUnderCompletionType(t *testing.T) {
	for _, kind := range mysqltest.Kinds() {
		server := mysqltest.Run(t, mysqltest.Config{Kind: kind}).Target()
		for _, typ := range []string{"CHAIN", "RELEASE"} {
			dsn := server.Database(t)
			plain, leaf := openOn(t, dsn, "leafTables=t&leafCreate=true", tableT, "SET GLOBAL completion_type = '"+typ+"'")
			for i := range int64(3) {
				if id := insertID(t, leaf, "INSERT INTO t (a) SELECT a FROM (SELECT ? a) x", i); id != i+1 {
					t.Errorf("%s %s: id %d, want %d", kind, typ, id, i+1)
				}
			}
			var max int
			if err := plain.QueryRow("SELECT max_id FROM leaf_alloc").Scan(&max); err != nil || max <= 3 {
				t.Errorf("%s %s: max_id on another connection = %d, error %v; want more than 3", kind, typ, max, err)
			}
		}
	}
}

// TestInternalPoolsIgnoreStatementLimits sets limits that do not affect the application's INSERT: they apply to SELECT only, or are
// in the DSN of the store.
func TestInternalPoolsIgnoreStatementLimits(t *testing.T) {
	for _, target := range mysqltest.Targets(t) {
		limits := []string{"&max_join_size=1", "&Max_Execution_Time=1"}
		if target.Name == "mariadb" {
			limits[1] = "%3FMax_Statement_Time%3D0.000001"
		}
		for _, limit := range limits {
			t.Run(target.Name+"/"+limit, func(t *testing.T) {
				dsn := target.Database(t)
				_, leaf := openOn(t, dsn, "leafTables=t&leafCreate=true&leafStore="+strings.ReplaceAll(dsn, "/", "%2F")+limit, tableT)
				for i := range 50 {
					if id := insertID(t, leaf, "INSERT INTO t (a) VALUES (?)", i); id != int64(i)+1 {
						t.Errorf("id %d, want %d", id, i+1)
					}
				}
			})
		}
	}
}

// TestCloseReturnsWhileServerIsSilent: db.Close returns while fetches of many tags hang.
func TestCloseReturnsWhileServerIsSilent(t *testing.T) {
	const tables = 8
	setup := []string{allocTable}
	var rules []string
	for i := range tables {
		name := fmt.Sprintf("t%d", i)
		rules = append(rules, name)
		setup = append(setup, row(name, 1, 10), "CREATE TABLE "+name+" (id BIGINT PRIMARY KEY, a INT)")
	}
	dsn := mysqltest.Database(t)
	plain, _ := openOn(t, dsn, "leafTables=none", setup...)
	_ = plain
	proxy, through := proxied(t, dsn)
	leaf, err := sql.Open(driver.Name, dsn+"?leafTables="+strings.Join(rules, ",")+"&leafStore="+strings.ReplaceAll(through, "/", "%2F"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range rules {
		insertID(t, leaf, "INSERT INTO "+name+" (a) VALUES (1)")
	}
	proxy.Drop(netfault.Both)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	var wg sync.WaitGroup
	for _, name := range rules {
		wg.Go(func() {
			took := stopwatch.Start(t)
			if _, err := leaf.ExecContext(ctx, "INSERT INTO "+name+" (a) VALUES (1)"+strings.Repeat(", (1)", 100)); err == nil {
				t.Errorf("INSERT into %s with a silent store: no error, want one", name)
			}
			if took() > 4*time.Second {
				t.Errorf("INSERT returned after %v, want at most 4s", took())
			}
		})
	}
	wg.Wait()
	took := stopwatch.Start(t)
	if err := leaf.Close(); err != nil {
		t.Errorf("Close() = %v, want nil", err)
	}
	if took() > 5*time.Second {
		t.Errorf("Close() took %v, want at most 5s", took())
	}
}

// proxied returns a DSN that connects through a proxy to the server of dsn.
func proxied(t *testing.T, dsn string) (*netfault.Proxy, string) {
	at := strings.Index(dsn, "tcp(") + len("tcp(")
	end := at + strings.IndexByte(dsn[at:], ')')
	proxy := netfault.Start(t, dsn[at:end])
	return proxy, dsn[:at] + proxy.Addr() + dsn[end:]
}

// TestSlowServerProvidesIDs: a server that takes two seconds for each reply provides ids, also if no
// statement waits as long as a new connection takes.
func TestSlowServerProvidesIDs(t *testing.T) {
	for _, server := range mysqltest.Targets(t) {
		for _, limit := range []time.Duration{time.Hour, 5 * time.Second} {
			t.Run(fmt.Sprint(server.Name, " ", limit), func(t *testing.T) {
				t.Parallel()
				dsn := server.Database(t)
				proxy, through := proxied(t, dsn)
				proxy.Delay(netfault.ToClient, 2*time.Second)
				_, leaf := openOn(t, dsn, "leafTables=t&leafStore="+strings.ReplaceAll(through, "/", "%2F"), allocTable, row("t", 1, 20), tableT)
				took := stopwatch.Start(t)
				for i := 0; i < 60; {
					ctx, cancel := context.WithTimeout(t.Context(), limit)
					_, err := leaf.ExecContext(ctx, "INSERT INTO t (a) VALUES (?)", i)
					cancel()
					if i == 0 && err == nil {
						t.Log("the first id after", took())
					}
					if err == nil {
						i++
					} else if limit == time.Hour || took() > time.Minute {
						t.Fatalf("INSERT %d: error %v, want none", i, err)
					}
				}
				if t.Log("60 ids after", took()); took() > time.Minute {
					t.Errorf("60 ids took %v, want at most 1m", took())
				}
			})
		}
	}
}
