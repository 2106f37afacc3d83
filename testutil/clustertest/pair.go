//go:build unix

package clustertest

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/leafsql/leafsql/testutil/freeport"
	"github.com/leafsql/leafsql/testutil/haproxytest"
	"github.com/leafsql/leafsql/testutil/mysqltest"
)

// A Pair is a primary, a read-only replica, and an HAProxy that forwards connections to the primary only. GTIDs are on.
type Pair struct {
	Primary, Replica *mysqltest.Server

	kind         mysqltest.Kind
	args         []string
	servers      int
	proxy        *haproxytest.HAProxy
	balancerAddr string
}

// NewPair starts a pair that ends with the test. args are further options of both servers.
func NewPair(t testing.TB, kind mysqltest.Kind, args ...string) *Pair {
	t.Helper()
	p := &Pair{kind: kind, args: args}
	port, err := freeport.Find()
	if err != nil {
		t.Fatal(err)
	}
	p.balancerAddr = fmt.Sprintf("127.0.0.1:%d", port)
	p.proxy = haproxytest.Run(t, "listen db\n\tbind "+p.balancerAddr+"\n\tserver one 127.0.0.1:1")
	p.Promote(t, p.server(t))
	p.Execute(t, p.Primary, "CREATE DATABASE ids")
	p.AddReplica(t)
	return p
}

// BalancerAddr returns HAProxy's address, which leads to the primary.
func (p *Pair) BalancerAddr() string { return p.balancerAddr }

// server starts a server with the pair's options and a new server id.
func (p *Pair) server(t testing.TB) *mysqltest.Server {
	t.Helper()
	p.servers++
	args := []string{fmt.Sprintf("--server-id=%d", p.servers), "--log-bin=binlog", "--innodb-flush-log-at-trx-commit=1", "--sync-binlog=1"}
	switch p.kind {
	case mysqltest.MariaDB:
		args = append(args, "--binlog-format=ROW", "--log-slave-updates")
	case mysqltest.MySQL:
		args = append(args, "--plugin-load-add=semisync_source.so", "--plugin-load-add=semisync_replica.so")
	}
	return mysqltest.Run(t, mysqltest.Config{Kind: p.kind, Args: append(args, p.args...)})
}

// AddReplica starts a new replica, and waits until it has applied the primary's whole binlog.
func (p *Pair) AddReplica(t testing.TB) {
	t.Helper()
	p.Replica = p.server(t)
	p.Replicate(t, p.Replica, p.Primary)
	p.AwaitReplica(t)
}

// Replicate makes a server a read-only replica of another one.
func (p *Pair) Replicate(t testing.TB, replica, source *mysqltest.Server) {
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
	p.Execute(t, replica, texts...)
}

// ResyncReplica replaces the rows of the replica's leaf_alloc by those of the primary, and starts replication
// from that position. The replica keeps its server identity.
func (p *Pair) ResyncReplica(t testing.TB) {
	t.Helper()
	const values = "CONCAT_WS(',', QUOTE(biz_tag), max_id, step, QUOTE(description))"
	rows := p.Query(t, p.Primary, "SELECT GROUP_CONCAT('(', "+values+", ')') FROM leaf_alloc")
	reset, executed, position := "RESET BINARY LOGS AND GTIDS", "@@gtid_executed", "gtid_purged"
	if p.kind == mysqltest.MariaDB {
		reset, executed, position = "RESET MASTER", "@@gtid_binlog_pos", "gtid_slave_pos"
	}
	set := "SET GLOBAL " + position + " = '" + p.Query(t, p.Primary, "SELECT "+executed) + "'"
	p.Execute(t, p.Replica, "USE ids", "TRUNCATE leaf_alloc", "INSERT INTO leaf_alloc (biz_tag, max_id, step, description) VALUES "+rows, reset, set)
	p.Replicate(t, p.Replica, p.Primary)
	p.AwaitReplica(t)
}

// AwaitReplica waits until the replica has applied all transactions that the primary has committed.
func (p *Pair) AwaitReplica(t testing.TB) {
	t.Helper()
	name := fmt.Sprintf("ids.sync_%d", time.Now().UnixNano())
	p.Execute(t, p.Primary, "CREATE TABLE "+name+" (a INT)")
	for deadline := time.Now().Add(4 * time.Minute); ; time.Sleep(10 * time.Millisecond) { // a new replica applies all of the history
		err := run(t.Context(), p.Replica, "SELECT 1 FROM "+name)
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the replica applies nothing: %v\n%s", err, p.Replica.Log())
		}
	}
}

// PauseReplication stops the replica from receiving events, until ResumeReplication.
func (p *Pair) PauseReplication(t testing.TB) {
	t.Helper()
	if p.kind == mysqltest.MariaDB {
		p.Execute(t, p.Replica, "STOP SLAVE IO_THREAD")
		return
	}
	p.Execute(t, p.Replica, "STOP REPLICA IO_THREAD")
}

// SemiSync makes the primary wait for the replica at each commit. If the replica does not answer within the limit, the primary
// becomes asynchronous without an error, until the replica is back.
func (p *Pair) SemiSync(t testing.TB, limit time.Duration) {
	t.Helper()
	source, replica := "rpl_semi_sync_source", "rpl_semi_sync_replica"
	if p.kind == mysqltest.MariaDB {
		source, replica = "rpl_semi_sync_master", "rpl_semi_sync_slave"
	}
	p.Execute(t, p.Replica, "SET GLOBAL "+replica+"_enabled=1")
	p.PauseReplication(t)
	p.ResumeReplication(t)
	p.Execute(t, p.Primary, "SET GLOBAL "+source+"_wait_point='AFTER_SYNC'", fmt.Sprintf("SET GLOBAL %s_timeout=%d", source, limit.Milliseconds()),
		"SET GLOBAL "+source+"_enabled=1")
	p.AwaitReplica(t)
	for deadline := time.Now().Add(time.Minute); !p.IsSemiSync(t); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("the primary does not wait for the replica\n%s", p.Primary.Log())
		}
	}
}

// IsSemiSync reports whether the primary waits for the replica at each commit.
func (p *Pair) IsSemiSync(t testing.TB) bool {
	t.Helper()
	const query = "SELECT VARIABLE_VALUE FROM "
	if p.kind == mysqltest.MariaDB {
		return p.Query(t, p.Primary, query+"information_schema.GLOBAL_STATUS WHERE VARIABLE_NAME = 'Rpl_semi_sync_master_status'") == "ON"
	}
	return p.Query(t, p.Primary, query+"performance_schema.global_status WHERE VARIABLE_NAME = 'Rpl_semi_sync_source_status'") == "ON"
}

// FailOver kills the primary, waits until the replica has applied the events that it received, and promotes it. It returns the
// time at which the new primary began to accept writes. Replica is then the killed server.
func (p *Pair) FailOver(t testing.TB) time.Time {
	t.Helper()
	if err := p.Primary.Kill9(); err != nil {
		t.Fatal(err)
	}
	p.PauseReplication(t)
	p.applyReceived(t)
	return p.exchange(t)
}

// exchange makes the replica the primary, and returns the time at which it began to accept writes.
func (p *Pair) exchange(t testing.TB) time.Time {
	t.Helper()
	texts := []string{"STOP REPLICA", "RESET REPLICA ALL", "SET GLOBAL super_read_only=0", "SET GLOBAL read_only=0"}
	if p.kind == mysqltest.MariaDB {
		texts = []string{"STOP SLAVE", "RESET SLAVE ALL", "SET GLOBAL read_only=0"}
	}
	p.Execute(t, p.Replica, texts...)
	at := time.Now()
	old := p.Primary
	p.Promote(t, p.Replica)
	p.Replica = old
	return at
}

// ReadOnly makes the primary refuse or accept the writes of programs. Their connections stay open.
func (p *Pair) ReadOnly(t testing.TB, on bool) {
	t.Helper()
	variable := "super_read_only"
	if p.kind == mysqltest.MariaDB || !on {
		variable = "read_only" // also turns off super_read_only
	}
	p.Execute(t, p.Primary, fmt.Sprintf("SET GLOBAL %s=%t", variable, on))
}

// SwitchOver makes the primary read-only, waits until the replica has all of its transactions, and exchanges them. It loses nothing.
func (p *Pair) SwitchOver(t testing.TB) {
	t.Helper()
	p.ReadOnly(t, true)
	executed, wait := "@@gtid_executed", "WAIT_FOR_EXECUTED_GTID_SET"
	if p.kind == mysqltest.MariaDB {
		executed, wait = "@@gtid_binlog_pos", "MASTER_GTID_WAIT"
	}
	all := p.Query(t, p.Primary, "SELECT "+executed)
	if result := p.Query(t, p.Replica, fmt.Sprintf("SELECT %s('%s', 60)", wait, all)); result != "0" {
		t.Fatalf("the replica has not applied %s: %s\n%s", all, result, p.Replica.Log())
	}
	p.exchange(t)
	texts := []string{"SET GLOBAL rpl_semi_sync_source_enabled=0"} // it would wait for a replica of its own
	if p.kind == mysqltest.MariaDB {
		texts = []string{"SET GLOBAL rpl_semi_sync_master_enabled=0", "SET GLOBAL gtid_slave_pos = '" + all + "'"}
	}
	p.Execute(t, p.Replica, texts...)
	p.Replicate(t, p.Replica, p.Primary)
	p.AwaitReplica(t)
}

// applyReceived waits until the replica has applied all events that it has received.
func (p *Pair) applyReceived(t testing.TB) {
	t.Helper()
	show, column, wait := "SHOW REPLICA STATUS", "Retrieved_Gtid_Set", "WAIT_FOR_EXECUTED_GTID_SET"
	if p.kind == mysqltest.MariaDB {
		show, column, wait = "SHOW SLAVE STATUS", "Gtid_IO_Pos", "MASTER_GTID_WAIT"
	}
	db, err := sqlx.Open("mysql", p.Replica.DSN(""))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	status := make(map[string]any)
	if err := db.QueryRowxContext(t.Context(), show).MapScan(status); err != nil {
		t.Fatalf("%s: %v", show, err)
	}
	if result := p.Query(t, p.Replica, fmt.Sprintf("SELECT %s('%s', 60)", wait, status[column])); result != "0" {
		t.Fatalf("the replica has not applied %s: %s\n%s", status[column], result, p.Replica.Log())
	}
}

// Promote makes a server the primary: HAProxy closes the connections to the previous primary and forwards new
// connections to the server.
func (p *Pair) Promote(t testing.TB, server *mysqltest.Server) {
	t.Helper()
	p.Primary = server
	host, port, _ := strings.Cut(server.Addr(), ":")
	for _, command := range []string{"set server db/one state maint", "shutdown sessions server db/one", "set server db/one addr " + host + " port " + port, "set server db/one state ready"} {
		if answer := p.proxy.Ask(t, command); strings.Contains(answer, "denied") {
			t.Fatalf("%s: %s", command, answer)
		}
	}
}

// Execute runs statements on one connection to a server. MySQL's STOP REPLICA may take a minute: if the replica has received a part of
// a transaction, it waits for the rest.
func (p *Pair) Execute(t testing.TB, s *mysqltest.Server, texts ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	if err := run(ctx, s, texts...); err != nil {
		t.Fatalf("clustertest: %s: %v", s.Addr(), err)
	}
}

// Query runs a query in the database ids of a server and returns its only value.
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

// ResumeReplication makes the replica receive events again, including the missed ones.
func (p *Pair) ResumeReplication(t testing.TB) {
	t.Helper()
	if p.kind == mysqltest.MariaDB {
		p.Execute(t, p.Replica, "START SLAVE IO_THREAD")
		return
	}
	p.Execute(t, p.Replica, "START REPLICA IO_THREAD")
}

// AllowReplicaWrites makes the replica accept writes while it replicates, as in a circular replication.
func (p *Pair) AllowReplicaWrites(t testing.TB) {
	t.Helper()
	if p.kind == mysqltest.MySQL {
		p.Execute(t, p.Replica, "SET GLOBAL super_read_only=0")
	}
	p.Execute(t, p.Replica, "SET GLOBAL read_only=0")
}
