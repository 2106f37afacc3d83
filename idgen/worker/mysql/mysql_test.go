package mysql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/leafsql/leafsql/idgen/worker"
	"github.com/leafsql/leafsql/internal/leasetest"
	"github.com/leafsql/leafsql/internal/schema"
	"github.com/leafsql/leafsql/internal/servererr"
	"github.com/leafsql/leafsql/testutil/mysqltest"
	"github.com/leafsql/leafsql/testutil/netfault"
)

func openPool(t testing.TB, dsn, params string) *sql.DB {
	t.Helper()
	if params != "" {
		dsn += "?" + params
	}
	db, err := sql.Open("mysql", dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

func doc(owner string) worker.Doc {
	return worker.Doc{Nonce: strings.Repeat("a", 32), HighWater: time.UnixMilli(1_800_000_000_000), Owner: owner}
}

// Documents are read unchanged under all character sets and modes of a DSN.
func TestDocumentsAreReadUnchanged(t *testing.T) {
	for _, server := range mysqltest.Targets(t) {
		dsn := server.Database(t)
		reference := Open(openPool(t, dsn, ""), Config{Create: true}).Slots
		for i, params := range []string{"", "charset=latin1", "charset=gbk", "clientFoundRows=true", "sql_mode=''",
			"sql_mode='ANSI_QUOTES,NO_BACKSLASH_ESCAPES,PIPES_AS_CONCAT'", "interpolateParams=true&time_zone='%2B03:00'&parseTime=true"} {
			t.Run(server.Name+" "+params, func(t *testing.T) {
				src := Open(openPool(t, dsn, params), Config{Create: true})
				d := doc("Zoë's \"host\" \\ 🍃:7")
				v, ok, err := src.Slots.Put(t.Context(), i, d, "")
				if !ok {
					t.Fatal(err)
				}
				d.HighWater = d.HighWater.Add(time.Millisecond)
				if v, ok, err = src.Slots.Put(t.Context(), i, d, v); !ok {
					t.Fatal(err)
				}
				for _, slots := range []worker.Slots{src.Slots, reference} {
					if got, gv, err := slots.Get(t.Context(), i); got != d || gv != v || err != nil {
						t.Errorf("%+v at %q, %v; want %+v at %q", got, gv, err, d, v)
					}
				}
				if at, err := src.Time(t.Context()); err != nil || time.Since(at).Abs() > time.Minute {
					t.Errorf("the server's time is %v, %v, want time.Since(at).Abs() at most 1m and no error", at, err)
				}
			})
		}
	}
}

// Connections without autocommit are refused, as they would lose acknowledged writes.
func TestAutocommitOffIsRefused(t *testing.T) {
	for _, server := range mysqltest.Targets(t) {
		db := openPool(t, server.Database(t), "autocommit=0")
		k, err := worker.Keep(func(context.Context) (worker.Source, error) { return Open(db, Config{Create: true}), nil }, worker.Config{NewRegistry: true})
		if err != nil {
			t.Fatal(err)
		}
		defer k.Close()
		if _, err := k.Wait(t.Context()); err == nil || !strings.Contains(err.Error(), "remove autocommit=0") {
			t.Errorf("%s: Wait() = %v, want an error with \"remove autocommit=0\"", server.Name, err)
		}
	}
}

// The errors for a missing table, a table that the user may not write, and a wrong password
// have a hint.
func TestTableErrorsHaveHints(t *testing.T) {
	for _, server := range mysqltest.Targets(t) {
		db := openPool(t, server.Database(t), "")
		_, _, err := Open(db, Config{}).Slots.Get(t.Context(), 0)
		if e, ok := errors.AsType[*tableError](err); !ok || !strings.Contains(e.Error(), "CREATE TABLE") || !servererr.Is(err, servererr.NoSuchTable) {
			t.Errorf("%s: without the table: %v, want a tableError with CREATE TABLE", server.Name, err)
		}
		if _, ok, err := Open(db, Config{}).Slots.Put(t.Context(), 0, doc(""), ""); ok || !servererr.Is(err, servererr.NoSuchTable) {
			t.Errorf("%s: without the table: Put() = %v, %v, want false and \"no such table\"", server.Name, ok, err)
		}
		slots := Open(db, Config{Create: true}).Slots
		if _, v, err := slots.Get(t.Context(), 0); v != "" || err != nil {
			t.Errorf("%s: created: %q, %v, want v = \"\" and no error", server.Name, v, err)
		}
		if _, err := db.Exec("INSERT INTO leaf_worker (worker_id, nonce, hw, free, owner, registry) VALUES (7, '', 0, 0, '', '')"); err != nil {
			t.Fatal(err)
		}
		_, _, err = slots.Get(t.Context(), 7)
		if e, ok := errors.AsType[*tableError](err); !ok || !strings.Contains(e.Error(), "worker_id 7: ") || !strings.Contains(e.Hint(), "delete the row") {
			t.Errorf("%s: a row that is no document: %v, want ok = true, text with \"worker_id 7: \" and text with \"delete the row\"", server.Name, err)
		}
		nowhere := Open(openPool(t, mysqltest.WithDatabase(server.DSN(), "leafsql_nowhere"), ""), Config{Create: true})
		if _, err := nowhere.Identity(t.Context()); err == nil || !strings.Contains(err.Error(), "create the database, or correct the DSN") || !servererr.Is(err, servererr.UnknownDatabase) {
			t.Errorf("%s: without the database: %v, want an error with a hint to create it", server.Name, err)
		}
		user := fmt.Sprintf("u%d", time.Now().UnixNano()%1e9)
		for _, text := range []string{"CREATE USER " + user, "GRANT SELECT ON leaf_worker TO " + user} {
			if _, err := db.Exec(text); err != nil {
				t.Fatal(err)
			}
		}
		defer db.Exec("DROP USER " + user)
		var name string
		if err := db.QueryRow("SELECT DATABASE()").Scan(&name); err != nil {
			t.Fatal(err)
		}
		cfg, err := mysql.ParseDSN(mysqltest.WithDatabase(server.DSN(), name))
		if err != nil {
			t.Fatal(err)
		}
		cfg.User, cfg.Passwd = user, "wrong"
		if _, err := Open(openPool(t, cfg.FormatDSN(), ""), Config{}).Identity(t.Context()); err == nil || !strings.HasSuffix(err.Error(), "; correct the user and password in leafStore, or in the DSN if leafStore is not set") {
			t.Errorf("%s: a wrong password: %v, want an error with suffix \"; correct the user and password in leafStore, or in the DSN if leafStore is not set\"", server.Name, err)
		}
		cfg.Passwd = ""
		src := Open(openPool(t, cfg.FormatDSN(), ""), Config{})
		_, ok, err := src.Slots.Put(t.Context(), 0, doc(""), "")
		if e, denied := errors.AsType[*tableError](err); !denied || ok || !strings.Contains(e.Error(), "GRANT SELECT, INSERT, UPDATE") {
			t.Errorf("%s: denied: %v, %v, want denied = true, ok = false and text with \"GRANT SELECT, INSERT, UPDATE\"", server.Name, ok, err)
		}
		k, err := worker.Keep(func(context.Context) (worker.Source, error) { return src, nil }, worker.Config{Workers: 4})
		if err != nil {
			t.Fatal(err)
		}
		defer k.Close()
		if _, err := k.Wait(t.Context()); !strings.HasSuffix(fmt.Sprint(err), "with leafCreate also CREATE") || strings.Count(err.Error(), "leafsql: ") != 1 {
			t.Errorf("%s: registry cannot be created: %v, want a single error with the suffix \"with leafCreate also CREATE\"", server.Name, err)
		}
	}
}

// A table with a key that is not unique can have two rows for a worker id, and two processes would each
// change one of them. No process takes this worker id.
func TestTwoRowsAreRefused(t *testing.T) {
	for _, server := range mysqltest.Targets(t) {
		db := openPool(t, server.Database(t), "")
		slots := Open(db, Config{Create: true}).Slots
		v, ok, err := slots.Put(t.Context(), 0, doc("first"), "")
		if !ok {
			t.Fatal(err)
		}
		for _, text := range []string{"ALTER TABLE leaf_worker DROP PRIMARY KEY", "INSERT INTO leaf_worker SELECT * FROM leaf_worker"} {
			if _, err := db.Exec(text); err != nil {
				t.Fatal(err)
			}
		}
		_, _, read := slots.Get(t.Context(), 0)
		_, ok, written := slots.Put(t.Context(), 0, doc("second"), v)
		for _, err := range []error{read, written} {
			if e, is := errors.AsType[*tableError](err); !is || ok || !strings.Contains(e.Error(), "2 rows for worker_id 0") || !strings.Contains(e.Hint(), "primary key") {
				t.Errorf("server.Name = %s, ok = %v, err = %v, want is = true, ok = false, text with \"2 rows for worker_id 0\" and text with \"primary key\"", server.Name, ok, err)
			}
		}
	}
}

// The errors for a missing table and for a read-only server have one hint each, and processes continue soon after the problem
// is fixed.
func TestFixedServerIsUsedSoon(t *testing.T) {
	for _, kind := range kinds {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			server := mysqltest.Run(t, mysqltest.Config{Kind: kind})
			if err := execute(server, "CREATE DATABASE leases", "CREATE USER app", "GRANT ALL ON leases.* TO app"); err != nil {
				t.Fatal(err)
			}
			cfg, err := mysql.ParseDSN(server.DSN("leases"))
			if err != nil {
				t.Fatal(err)
			}
			cfg.User = "app"
			db := openPool(t, cfg.FormatDSN(), "")
			create := schema.LeafWorker("`leaf_worker`")
			for _, c := range []struct{ spoil, mend, wayOut string }{
				{"DO 0", create, strings.Join(strings.Fields(create), " ")},
				{"SET GLOBAL read_only = 1", "SET GLOBAL read_only = 0", "; set the DSN to a server that accepts writes, or make this one writable"},
			} {
				if err := execute(server, c.spoil); err != nil {
					t.Fatal(err)
				}
				k, err := worker.Keep(func(context.Context) (worker.Source, error) { return Open(db, Config{}), nil }, worker.Config{Workers: 4, NewRegistry: true})
				if err != nil {
					t.Fatal(err)
				}
				defer k.Close()
				if _, err := k.Wait(t.Context()); !strings.HasSuffix(fmt.Sprint(err), c.wayOut) {
					t.Errorf("%s: Wait() = %v, want suffix %q", c.spoil, err, c.wayOut)
				}
				if err := execute(server, "USE leases", c.mend); err != nil {
					t.Fatal(err)
				}
				if s := k.Status(); time.Until(s.Next) > 10*time.Second {
					t.Errorf("%s: the next try is in %v, want at most 10*time.Second", c.spoil, time.Until(s.Next))
				}
				if _, err := leasetest.Wait(t, k); err != nil {
					t.Errorf("after %s: Wait() = %v, want no error", c.mend, err)
				}
			}
		})
	}
}

// An error after which nothing was written is a refusal, so that the writer reads the slot again.
func TestConflictsAreRefusals(t *testing.T) {
	for _, server := range mysqltest.Targets(t) {
		db := openPool(t, server.Database(t), "")
		slots := Open(db, Config{Create: true}).Slots
		v, ok, err := slots.Put(t.Context(), 0, doc("first"), "")
		if !ok {
			t.Fatal(err)
		}
		for number, overtaken := range map[int]bool{1020: true, 1213: true, 3101: true, 1205: false} {
			if _, err := db.Exec(fmt.Sprintf("CREATE TRIGGER fails BEFORE UPDATE ON leaf_worker FOR EACH ROW SIGNAL SQLSTATE 'HY000' SET MYSQL_ERRNO = %d", number)); err != nil {
				t.Fatal(err)
			}
			if _, ok, err := slots.Put(t.Context(), 0, doc("second"), v); ok || (err == nil) != overtaken || leasetest.NotWritten(err) {
				t.Errorf("%s: server's error %d: Put() = %v, %v, want false and no error: %t", server.Name, number, ok, err, overtaken)
			}
			if _, err := db.Exec("DROP TRIGGER fails"); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// A write may have been executed if its reply is lost, and is stored once.
func TestLostReplyWritesOnce(t *testing.T) {
	for _, server := range mysqltest.Targets(t) {
		cfg, err := mysql.ParseDSN(server.Database(t))
		if err != nil {
			t.Fatal(err)
		}
		direct := Open(openPool(t, cfg.FormatDSN(), ""), Config{Create: true}).Slots
		proxy := netfault.Start(t, cfg.Addr)
		cfg.Addr, cfg.Net = proxy.Addr(), "tcp"
		slots := Open(openPool(t, cfg.FormatDSN(), ""), Config{}).Slots
		v, ok, err := direct.Put(t.Context(), 0, doc("first"), "")
		if !ok {
			t.Fatal(err)
		}
		if _, _, err := slots.Get(t.Context(), 0); err != nil { // opens a connection
			t.Fatal(err)
		}
		for _, spoil := range []func(){
			func() { proxy.CutAfter(netfault.ToClient, 0) },
			func() { proxy.Drop(netfault.ToClient) },
		} {
			spoil()
			d := doc("second")
			d.HighWater = d.HighWater.Add(time.Duration(len(v)) * time.Second)
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			_, ok, err = slots.Put(ctx, 0, d, v)
			cancel()
			proxy.Heal()
			if ok || err == nil || leasetest.NotWritten(err) {
				t.Errorf("%s: reply lost: Put() = %v, %v, want false and an error after which the write may exist", server.Name, ok, err)
			}
			got, after, err := direct.Get(t.Context(), 0)
			if err != nil || got != d || after == v {
				t.Errorf("%s: after it: %+v, %v, want got = %v, after other than %v and no error", server.Name, got, err, d, v)
			}
			if _, ok, err := slots.Put(t.Context(), 0, doc("third"), v); ok || err != nil {
				t.Errorf("%s: on what was there before it: %v, %v, want ok = false and no error", server.Name, ok, err)
			}
			v = after
		}
	}
}

// A worker id that is held costs one write per renewal, and no read.
func TestRenewalIsOneStatement(t *testing.T) {
	for _, kind := range kinds {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			server := mysqltest.Run(t, mysqltest.Config{Kind: kind})
			if err := execute(server, "CREATE DATABASE leases"); err != nil {
				t.Fatal(err)
			}
			db, look := openPool(t, server.DSN("leases"), ""), openPool(t, server.DSN("leases"), "")
			counts := func() (reads, writes int) {
				rows, err := look.Query("SHOW GLOBAL STATUS WHERE Variable_name IN ('Com_select', 'Com_insert', 'Com_update')")
				if err != nil {
					t.Fatal(err)
				}
				defer rows.Close()
				for rows.Next() {
					var name string
					var n int
					if err := rows.Scan(&name, &n); err != nil {
						t.Fatal(err)
					}
					if name == "Com_select" {
						reads += n
					} else {
						writes += n
					}
				}
				return reads, writes
			}
			const renewal = 7 * time.Second // the timeout of a call is half of it
			source := func(context.Context) (worker.Source, error) { return Open(db, Config{Create: true}), nil }
			k, err := worker.Keep(source, worker.Config{Workers: 8, Lease: 6 * renewal, NewRegistry: true})
			if err != nil {
				t.Fatal(err)
			}
			defer k.Close()
			if _, err := k.Wait(t.Context()); err != nil {
				t.Fatal(err)
			}
			for made := false; !made; time.Sleep(100 * time.Millisecond) {
				d, _, err := Open(look, Config{}).Slots.Get(t.Context(), worker.RegistrySlot)
				if err != nil {
					t.Fatal(err)
				}
				made = strings.HasSuffix(d.Owner, ": 8")
			}
			reads, writes := counts()
			began := time.Now()
			until := time.Now().Add(3 * renewal)
			for time.Now().Before(until) {
				<-k.Status().Changed()
			}
			r, w := counts()
			took := int(time.Since(began)/renewal) + 1
			if r != reads || w-writes < 2 || w-writes > took {
				t.Errorf("%d reads and %d writes in %v, want r = %v, w-writes at least 2 and w-writes at most %v", r-reads, w-writes, time.Since(began), reads, took)
			}
		})
	}
}
