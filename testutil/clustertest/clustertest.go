//go:build unix

// Package clustertest starts real database clusters of three nodes, MariaDB with Galera and MySQL with Group Replication, and pairs
// of a primary and a replica that fail over ([NewPair]).
//
//	c := clustertest.Galera(t)
//	name := c.Database(t)
//	db, err := sql.Open("mysql", c.Nodes[1].DSN(name))
//	...
//	c.Nodes[0].Kill9()
//	c.Rejoin(t)
//
// Each node is a private [mysqltest.Server] that ends with the test, and listens on free ports of 127.0.0.1.
// install.sh unpacks Galera, and Group Replication comes with the MySQL of `make mysql-server`. If one is missing, the test
// fails with the command to run.
//
// A node is killed, or frozen and thawed, or cut off from the others ([SeparableGroup]).
package clustertest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leafsql/leafsql/testutil/freeport"
	"github.com/leafsql/leafsql/testutil/mysqltest"
)

// A Cluster consists of three nodes that all accept writes.
type Cluster struct {
	Nodes [3]*mysqltest.Server
	maker clusterKind
	ports [3]int // for connections between nodes; each node also uses the port above its own
	chain string // name of the iptables chain with the rules of CutOff
}

// A clusterKind has the operations that differ between Galera and Group Replication.
type clusterKind interface {
	// form forms a cluster from nodes that were never started.
	form(ctx context.Context, nodes [3]*mysqltest.Server) error
	// rejoin starts node i, which was killed, and lets it join the cluster again. It may return before the node is a member.
	rejoin(ctx context.Context, nodes [3]*mysqltest.Server, i int) error
	// member returns nil if the node is in the part of the cluster with the majority, otherwise an error with its state.
	member(ctx context.Context, node *mysqltest.Server) error
}

// formTimeout is the time limit for the start of a cluster, and for the return of a node, on a busy machine.
const formTimeout = 4 * time.Minute

// start starts a cluster that ends with the test.
func start(t testing.TB, m clusterKind, config func(i int, ports [3]int) mysqltest.Config) *Cluster {
	t.Helper()
	c := &Cluster{maker: m}
	port, err := freeport.Find(0, 1, 2, 3, 4, 5)
	if err != nil {
		t.Fatal(err)
	}
	c.ports = [3]int{port, port + 2, port + 4}
	for i := range c.Nodes {
		if c.Nodes[i], err = mysqltest.Prepare(config(i, c.ports)); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if t.Failed() {
				t.Logf("node %d:\n%s", i, lastLines(c.Nodes[i].Log()))
			}
			if err := c.Nodes[i].Stop(); err != nil {
				t.Error(err)
			}
		})
	}
	ctx, cancel := context.WithTimeout(t.Context(), formTimeout)
	defer cancel()
	if err := m.form(ctx, c.Nodes); err != nil {
		t.Fatal(err)
	}
	c.Await(t)
	return c
}

// Await waits until every running node is a member of the cluster and accepts writes.
func (c *Cluster) Await(t testing.TB) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), formTimeout)
	defer cancel()
	for i, n := range c.Nodes {
		if !n.Running() {
			continue
		}
		if err := retryUntil(ctx, func() error { return c.maker.member(ctx, n) }); err != nil {
			t.Fatalf("clustertest: node %d: %v", i, err)
		}
	}
}

// Rejoin starts every killed node and waits until all nodes are members.
func (c *Cluster) Rejoin(t testing.TB) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), formTimeout)
	defer cancel()
	var away []int
	for i, n := range c.Nodes {
		if !n.Running() {
			away = append(away, i)
		}
	}
	errs := runTogether(len(away), func(k int) error { return c.maker.rejoin(ctx, c.Nodes, away[k]) })
	if errs != nil {
		t.Fatal(errs)
	}
	c.Await(t)
}

// Database creates a database, runs the statements in it, waits until all running nodes have applied them, and returns the
// database's name.
func (c *Cluster) Database(t testing.TB, statements ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), formTimeout)
	defer cancel()
	name := fmt.Sprintf("leafsql_%x", rand.Uint64())
	all := slices.Concat([]string{"CREATE DATABASE " + name, "USE " + name}, statements, []string{"CREATE TABLE leafsql_last (id INT PRIMARY KEY)"})
	for i, n := range c.Nodes {
		if !n.Running() {
			continue
		}
		err := run(ctx, n, all...) // on the first running node only
		all = nil
		if err == nil {
			err = retryUntil(ctx, func() error { return run(ctx, n, "SELECT id FROM "+name+".leafsql_last") })
		}
		if err != nil {
			t.Fatalf("clustertest: node %d: %v", i, err)
		}
	}
	return name
}

// run runs statements on one connection to the node.
func run(ctx context.Context, node *mysqltest.Server, statements ...string) error {
	db, err := sql.Open("mysql", node.DSN(""))
	if err != nil {
		return err
	}
	defer db.Close()
	conn, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	for _, text := range statements {
		if _, err := conn.ExecContext(ctx, text); err != nil {
			return fmt.Errorf("%s: %w", text, err)
		}
	}
	return nil
}

// queryValue runs a query on the node and returns its only value.
func queryValue(ctx context.Context, node *mysqltest.Server, query string) (value string, err error) {
	db, err := sql.Open("mysql", node.DSN(""))
	if err != nil {
		return "", err
	}
	defer db.Close()
	err = db.QueryRowContext(ctx, query).Scan(&value)
	return value, err
}

// retryUntil calls ok every 50 ms until it returns nil. If ctx ends first, it returns ok's last error.
func retryUntil(ctx context.Context, ok func() error) error {
	for {
		err := ok()
		if err == nil {
			return nil
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", context.Cause(ctx), err)
		}
	}
}

// runTogether calls f(0) … f(n-1) concurrently and joins their errors.
func runTogether(n int, f func(i int) error) error {
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { errs[i] = f(i) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// lastLines returns the last 15 lines of a log.
func lastLines(log string) string {
	lines := strings.Split(strings.TrimSpace(log), "\n")
	return strings.Join(lines[max(0, len(lines)-15):], "\n")
}
