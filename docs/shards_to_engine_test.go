//go:build tidb

package docs

import (
	"cmp"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/leafsql/leafsql/driver"
	"github.com/leafsql/leafsql/testutil/mysqltest"
)

const enginePage = "shards-to-engine.md"

// TestShardsToEngine moves a shop from two databases into TiDB and back, with the commands, the SQL and the deployments of
// shards-to-engine.md, while the shop's program writes, changes, cancels and reads orders. In both directions the first
// move is interrupted. It needs TiDB, and is run by make versions SERVERS=tidb.
func TestShardsToEngine(t *testing.T) {
	buildToolsFolder(t) // before the program runs
	for _, kind := range []mysqltest.Kind{mysqltest.MariaDB, mysqltest.MySQL} {
		t.Run(string(kind), func(t *testing.T) {
			hosts := map[string]*mysqltest.Server{"tidb": mysqltest.Run(t, mysqltest.Config{Args: durableOptions})}
			t.Setenv(mysqltest.EnvServer, string(kind)) // for the other servers
			for _, name := range []string{"db0", "db1"} {
				hosts[name] = mysqltest.Run(t, mysqltest.Config{Kind: kind, Args: durableOptions})
			}
			dir := t.TempDir()
			writeClients(t, dir, hosts)
			o := &shopMove{t: t, shell: shell{hosts: hosts, exports: "export PATH=" + dir + ":$PATH\n"}, log: newRequests()}
			o.log.setCancels(true)
			o.followShardsToEngine()
		})
	}
}

// followShardsToEngine follows the page.
func (o *shopMove) followShardsToEngine() {
	t, page := o.t, readPage(o.t, enginePage)
	o.prepareHosts()
	defer o.end()
	o.createShards(page)
	var at block
	for _, b := range page.blocks {
		before := at
		at = b
		step := cmp.Or(b.sub, b.section)
		began := step != cmp.Or(before.sub, before.section)
		o.log.enterStep(step)
		switch {
		case began && strings.HasPrefix(step, "4. "):
			o.running.awaitRequests(2000)
			o.interruptMove("db0", "tidb", "TRUE")
		case began && strings.HasPrefix(step, "5. "):
			o.checkEmpty("db0", "db1")
		case b.section == "Rollback" && before.section != b.section:
			o.checkEmpty("db0", "db1")
		case strings.Contains(b.code, "customer % 2 = 0"):
			o.running.awaitRequests(2000)
			o.interruptMove("tidb", "db0", "customer % 2 = 0")
		case strings.HasSuffix(step, "leaf_alloc") && b.lang == "sh deploy":
			o.addManyNotes()
		case strings.HasPrefix(b.code, "-- on db0\nDROP DATABASE leaf"):
			o.checkOldCounterIsRefused("db0")
		case strings.HasPrefix(b.code, "-- on tidb\nDROP DATABASE leaf"):
			o.checkOldCounterIsRefused("tidb")
		}
		o.runBlock(enginePage, b)
	}
	o.checkEmpty("tidb")
	o.running.stop()
	o.running = nil
	o.verify()
	for _, f := range o.log.failures {
		if f.err != "1213" {
			t.Errorf("in %q a request fails, which the page does not announce: %s", f.ended, f.err)
		}
	}
}

// createShards creates the two databases and leaf_alloc, as the page's example has them.
func (o *shopMove) createShards(page page) {
	for _, b := range page.blocks {
		if tables, ok := strings.CutPrefix(b.code, "-- on tidb\nCREATE DATABASE shop;"); ok {
			runSQL(o.t, o.hosts, "-- on db0 and db1\nCREATE DATABASE shop;"+tables)
		}
	}
	runSQL(o.t, o.hosts, "-- on db0 and db1\nGRANT CREATE TEMPORARY TABLES ON shop.* TO app;\n")
	runSQL(o.t, o.hosts, "CREATE DATABASE leaf;\n")
	s := shell{hosts: o.hosts}
	s.run(o.t, "leafsql init -dsn 'admin:secret@tcp(db0:3306)/shop?leafTables=orders,items,notes&leafStore=admin:secret@tcp(db0:3306)%2Fleaf'\n")
	runSQL(o.t, o.hosts, "GRANT SELECT, UPDATE ON leaf.leaf_alloc TO app;\n")
}

// interruptMove starts a move, and kills it after the first orders are stored in the other database and before they are
// deleted here. Then it cancels one of them and changes another one.
func (o *shopMove) interruptMove(from, to, where string) {
	t := o.t
	t.Helper()
	source, target := open(t, o.hosts[from]), open(t, o.hosts[to])
	defer source.Close()
	defer target.Close()
	canceled, changed := o.pickOrders(source, where)
	lock, err := source.Begin()
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Rollback()
	if _, err := lock.Exec(fmt.Sprintf("SELECT id FROM shop.items WHERE order_id = %d FOR UPDATE", canceled)); err != nil {
		t.Fatal(err)
	}
	move := exec.Command(filepath.Join(buildToolsFolder(t), "move"), where)
	move.Env = append(os.Environ(), replaceAddresses(o.hosts, "FROM=admin:secret@tcp("+from+":3306)/shop"), replaceAddresses(o.hosts, "TO=admin:secret@tcp("+to+":3306)/shop"))
	if err := move.Start(); err != nil {
		t.Fatal(err)
	}
	stored := func(db *sql.DB, id int64) (n int) {
		if err := db.QueryRow("SELECT COUNT(*) FROM shop.orders WHERE id = ?", id).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	for deadline := time.Now().Add(time.Minute); stored(target, changed) == 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("order %d is not in %s after a minute", changed, to)
		}
	}
	if err := move.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	move.Wait()
	if err := lock.Rollback(); err != nil {
		t.Fatal(err)
	}
	if here, there := stored(source, changed), stored(target, changed); here != 1 || there != 1 {
		t.Fatalf("order %d is stored %d times in %s and %d times in %s, want once in both", changed, here, from, there, to)
	}
	o.running.request(func() error { return o.running.cancelOrder(canceled) })
	if here, there := stored(source, canceled), stored(target, canceled); here != 0 || there != 0 {
		t.Errorf("the canceled order %d is stored %d times in %s and %d times in %s, want never", canceled, here, from, there, to)
	}
	o.running.request(func() error { return o.running.raiseTotal(changed) })
	o.log.setCancels(true)
}

// pickOrders returns the first two orders that a move takes. The program no longer cancels orders when it returns; the
// first order counts as canceled.
func (o *shopMove) pickOrders(db *sql.DB, where string) (canceled, changed int64) {
	o.t.Helper()
	o.running.gate.Lock() // no request is in progress
	defer o.running.gate.Unlock()
	first := "SELECT MIN(id) FROM shop.orders WHERE " + where
	for query, id := range map[string]*int64{first: &canceled, first + " AND id > (" + first + ")": &changed} {
		if err := db.QueryRow(query).Scan(id); err != nil {
			o.t.Fatal(err)
		}
	}
	if o.log.setCancels(false); !o.log.cancel(canceled) {
		o.t.Fatalf("order %d is stored, and is not an order of the program", canceled)
	}
	return canceled, changed
}

// addManyNotes makes the program fetch ids from its leaf_alloc after the rows of leaf_alloc were copied.
func (o *shopMove) addManyNotes() {
	const notes = 5000
	o.t.Helper()
	o.running.gate.Lock() // no order is canceled
	defer o.running.gate.Unlock()
	record := func(id int64) {
		for range notes {
			o.log.recordNote(id)
		}
	}
	err := o.running.change(o.log.pickOrder(), record, func(tx *sql.Tx, id int64, _ []*sql.DB) error {
		row := fmt.Sprintf("(%d, 'more')", id)
		_, err := tx.Exec("INSERT INTO notes (order_id, note) VALUES " + row + strings.Repeat(", "+row, notes-1))
		return err
	})
	if err != nil {
		o.t.Fatal(err)
	}
}

// checkEmpty compares the databases with the acknowledged requests. None of the servers may have orders.
func (o *shopMove) checkEmpty(hosts ...string) {
	o.t.Helper()
	rows := o.verify()
	for _, host := range hosts {
		if rows[host] != 0 {
			o.t.Errorf("orders on %s = %d, want 0", host, rows[host])
		}
	}
}

// checkOldCounterIsRefused checks that a process that starts with the leaf_alloc of a server, from which it was moved away,
// inserts nothing.
func (o *shopMove) checkOldCounterIsRefused(host string) {
	t := o.t
	t.Helper()
	db, err := sql.Open("mysql-leaf", replaceAddresses(o.hosts, fmt.Sprintf("app:secret@tcp(tidb:4000)/shop?leafTables=orders&leafStore=app:secret@tcp(%s:4000)%%2Fleaf", host)))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	res, err := db.Exec("INSERT INTO orders (customer, total) VALUES (0, 0)")
	if err == nil {
		id, _ := res.LastInsertId()
		t.Errorf("a process with the old leaf_alloc of %s gets the id %d, want a refusal", host, id)
	} else if !errors.Is(err, driver.ErrRefused) {
		t.Errorf("error %v, want a refusal", err)
	}
}
