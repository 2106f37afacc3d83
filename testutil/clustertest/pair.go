//go:build unix

package clustertest

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/leafsql/leafsql/testutil/freeport"
	"github.com/leafsql/leafsql/testutil/haproxytest"
	"github.com/leafsql/leafsql/testutil/mysqltest"
)

// A Pair is a primary with a replica that takes no writes, behind HAProxy, which leads to the primary alone. GTIDs are on.
type Pair struct {
	Primary, Replica *mysqltest.Server

	kind    mysqltest.Kind
	args    []string
	servers int
	proxy   *haproxytest.HAProxy
	front   string
}

// NewPair starts a pair. Args are further options of both servers.
func NewPair(t testing.TB, kind mysqltest.Kind, args ...string) *Pair {
	t.Helper()
	p := &Pair{kind: kind, args: args}
	port, err := freeport.Find()
	if err != nil {
		t.Fatal(err)
	}
	p.front = fmt.Sprintf("127.0.0.1:%d", port)
	p.proxy = haproxytest.Run(t, "listen db\n\tbind "+p.front+"\n\tserver one 127.0.0.1:1")
	p.Primary = p.server(t)
	p.execute(t, p.Primary, "CREATE DATABASE ids")
	p.direct(t)
	p.AddReplica(t)
	return p
}

// DSN leads to the primary through HAProxy.
func (p *Pair) DSN() string { return "root@tcp(" + p.front + ")/ids" }

func (p *Pair) server(t testing.TB) *mysqltest.Server {
	t.Helper()
	p.servers++
	args := []string{fmt.Sprintf("--server-id=%d", p.servers), "--log-bin=binlog", "--innodb-flush-log-at-trx-commit=1", "--sync-binlog=1"}
	if p.kind == mysqltest.MariaDB {
		args = append(args, "--binlog-format=ROW", "--log-slave-updates")
	}
	return mysqltest.Run(t, mysqltest.Config{Kind: p.kind, Args: append(args, p.args...)})
}

// AddReplica starts a new replica, which applies all that the primary has in its binlog.
func (p *Pair) AddReplica(t testing.TB) {
	t.Helper()
	p.Replica = p.server(t)
	p.Follow(t, p.Replica, p.Primary)
	p.Await(t)
}

// Follow has one server replicate from another.
func (p *Pair) Follow(t testing.TB, replica, source *mysqltest.Server) {
	t.Helper()
	host, port, _ := strings.Cut(source.Addr(), ":")
	texts := []string{
		fmt.Sprintf("CHANGE REPLICATION SOURCE TO SOURCE_HOST='%s', SOURCE_PORT=%s, SOURCE_USER='root', SOURCE_AUTO_POSITION=1, GET_SOURCE_PUBLIC_KEY=1", host, port),
		"START REPLICA", "SET GLOBAL super_read_only=1",
	}
	if p.kind == mysqltest.MariaDB {
		texts = []string{
			fmt.Sprintf("CHANGE MASTER TO MASTER_HOST='%s', MASTER_PORT=%s, MASTER_USER='root', MASTER_USE_GTID=slave_pos", host, port),
			"START SLAVE", "SET GLOBAL read_only=1",
		}
	}
	p.execute(t, replica, texts...)
}

// Await waits until the replica has applied what the primary has committed.
func (p *Pair) Await(t testing.TB) {
	t.Helper()
	name := fmt.Sprintf("ids.sync_%d", time.Now().UnixNano())
	p.execute(t, p.Primary, "CREATE TABLE "+name+" (a INT)")
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		err := run(t.Context(), p.Replica, "SELECT 1 FROM "+name)
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the replica applies nothing: %v\n%s", err, p.Replica.Log())
		}
	}
}

// Lag has the replica receive nothing any more.
func (p *Pair) Lag(t testing.TB) {
	t.Helper()
	if p.kind == mysqltest.MariaDB {
		p.execute(t, p.Replica, "STOP SLAVE IO_THREAD")
		return
	}
	p.execute(t, p.Replica, "STOP REPLICA IO_THREAD")
}

// FailOver kills the primary and makes the replica the new one. It returns the time at which that takes writes.
func (p *Pair) FailOver(t testing.TB) time.Time {
	t.Helper()
	if err := p.Primary.Kill9(); err != nil {
		t.Fatal(err)
	}
	p.Primary, p.Replica = p.Replica, p.Primary
	texts := []string{"STOP REPLICA", "RESET REPLICA ALL", "SET GLOBAL super_read_only=0", "SET GLOBAL read_only=0"}
	if p.kind == mysqltest.MariaDB {
		texts = []string{"STOP SLAVE", "RESET SLAVE ALL", "SET GLOBAL read_only=0"}
	}
	p.execute(t, p.Primary, texts...)
	at := time.Now()
	p.direct(t)
	return at
}

// direct has HAProxy lead to the primary, and ends the connections to another server.
func (p *Pair) direct(t testing.TB) {
	t.Helper()
	host, port, _ := strings.Cut(p.Primary.Addr(), ":")
	for _, command := range []string{"set server db/one state maint", "shutdown sessions server db/one", "set server db/one addr " + host + " port " + port, "set server db/one state ready"} {
		if answer := p.proxy.Ask(t, command); strings.Contains(answer, "denied") {
			t.Fatalf("%s: %s", command, answer)
		}
	}
}

func (p *Pair) execute(t testing.TB, s *mysqltest.Server, texts ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := run(ctx, s, texts...); err != nil {
		t.Fatalf("clustertest: %s: %v", s.Addr(), err)
	}
}

// Query reads one value from a server.
func (p *Pair) Query(t testing.TB, s *mysqltest.Server, query string) (value string) {
	t.Helper()
	db, err := sql.Open("mysql", s.DSN("ids"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := db.QueryRowContext(t.Context(), query).Scan(&value); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return value
}

// Resume has the replica receive again what it has missed.
func (p *Pair) Resume(t testing.TB) {
	t.Helper()
	if p.kind == mysqltest.MariaDB {
		p.execute(t, p.Replica, "START SLAVE IO_THREAD")
		return
	}
	p.execute(t, p.Replica, "START REPLICA IO_THREAD")
}

// TakeWrites has the replica take writes while it replicates, as in a circular replication.
func (p *Pair) TakeWrites(t testing.TB) {
	t.Helper()
	if p.kind == mysqltest.MySQL {
		p.execute(t, p.Replica, "SET GLOBAL super_read_only=0")
	}
	p.execute(t, p.Replica, "SET GLOBAL read_only=0")
}
