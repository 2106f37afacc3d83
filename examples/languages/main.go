// Command languages shows leafsql proxy: programs in PHP, Python, Java, Node and Go write orders to two databases at
// once, first with AUTO_INCREMENT and then through the proxy. Only the port that the programs use changes.
//
//	make demo-proxy
//
// It starts a private MariaDB server and throws it away afterwards.
package main

import (
	"context"
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/leafsql/leafsql/driver"
	"github.com/leafsql/leafsql/proxy"
	"github.com/leafsql/leafsql/testutil/mysqltest"
)

const (
	user     = "app"
	password = "a secret"
)

func main() {
	if os.Getenv(goEnv) != "" {
		if err := writeOrders(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	rows := flag.Int("orders", 10_000, "orders that each program writes")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Stdout, *rows); err != nil {
		fmt.Fprintln(os.Stderr, "languages:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer, rows int) error {
	server, err := mysqltest.Start(mysqltest.Config{Kind: mysqltest.MariaDB})
	if err != nil {
		return err
	}
	defer server.Stop()
	db, err := sql.Open("mysql", server.DSN(""))
	if err != nil {
		return err
	}
	defer db.Close()
	if err := create(ctx, db); err != nil {
		return err
	}
	version, err := server.Version()
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "leafsql proxy: five languages, two databases\n%s, private and throw-away, on this machine\n", version)

	fmt.Fprintf(out, "\n1. Two shards with AUTO_INCREMENT\n   programs connect to %s\n\n", server.Addr())
	plain := shards{"plain_a", "plain_b"}
	if err := plain.write(ctx, out, db, server.Addr(), rows); err != nil {
		return err
	}

	addr, stop, err := startProxy(server)
	if err != nil {
		return err
	}
	defer stop()
	fmt.Fprintf(out, "\n2. The same programs, another port, and no AUTO_INCREMENT\n   leafsql proxy -listen %s, in front of %s\n\n", addr, server.Addr())
	leaf := shards{"leaf_a", "leaf_b"}
	if err := leaf.write(ctx, out, db, addr, rows); err != nil {
		return err
	}
	if n, err := leaf.countDuplicates(ctx, db); err != nil || n > 0 {
		return errors.Join(err, fmt.Errorf("%d ids are there twice", n))
	}
	return nil
}

// create creates the databases and the programs' user.
func create(ctx context.Context, db *sql.DB) error {
	table := "orders (id BIGINT NOT NULL %s PRIMARY KEY, program VARCHAR(10) NOT NULL, total INT NOT NULL)"
	statements := []string{fmt.Sprintf("CREATE USER %s@'%%' IDENTIFIED BY '%s'", user, password), "CREATE DATABASE alloc"}
	for shard, key := range map[string]string{"plain_a": "AUTO_INCREMENT", "plain_b": "AUTO_INCREMENT", "leaf_a": "", "leaf_b": ""} {
		statements = append(statements, "CREATE DATABASE "+shard, "CREATE TABLE "+shard+"."+fmt.Sprintf(table, key),
			fmt.Sprintf("GRANT ALL ON %s.* TO %s@'%%'", shard, user))
	}
	for _, s := range statements {
		if _, err := db.ExecContext(ctx, s); err != nil {
			return fmt.Errorf("%s: %w", s, err)
		}
	}
	return nil
}

// startProxy starts a proxy with one leaf_alloc for both shards.
func startProxy(server *mysqltest.Server) (addr string, stop func(), err error) {
	cfg, err := driver.ParseDSN(server.DSN("alloc") + "?leafTables=*.orders&leafCreate=true")
	if err != nil {
		return "", nil, err
	}
	connector, err := driver.NewConnector(cfg)
	if err != nil {
		return "", nil, err
	}
	p, err := proxy.New(proxy.Config{Connector: connector, Server: server.Addr()})
	if err != nil {
		return "", nil, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	go p.Serve(l)
	return l.Addr().String(), func() { p.Close(); connector.Close() }, nil
}

// shards are the databases to which a program writes in turn.
type shards [2]string

// write runs all programs at once, and prints the contents of the databases
// afterwards.
func (s shards) write(ctx context.Context, out io.Writer, db *sql.DB, addr string, rows int) error {
	start := time.Now()
	took, err := runAll(ctx, addr, s, rows)
	if err != nil {
		return err
	}
	elapsed := time.Since(start)
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "program\torders\trows/s\t")
	total := 0
	for i, p := range programs {
		var n int
		if err := db.QueryRowContext(ctx, "SELECT COUNT(*) FROM "+s.ordersSQL()+" WHERE program = ?", p.name).Scan(&n); err != nil {
			return err
		}
		if n != rows {
			return fmt.Errorf("%s wrote %d orders, and the databases have %d of them", p.name, rows, n)
		}
		total += n
		fmt.Fprintf(table, "%s\t%d\t%.0f\t\n", p.name, n, float64(rows)/took[i].Seconds())
	}
	fmt.Fprintf(table, "all\t%d\t%.0f\t\n", total, float64(total)/elapsed.Seconds())
	if err := table.Flush(); err != nil {
		return err
	}
	duplicates, err := s.countDuplicates(ctx, db)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "\n   both databases together: %d orders, %d ids, duplicates %d\n", total, total-duplicates, duplicates)
	return nil
}

// ordersSQL returns SQL for a table of all orders.
func (s shards) ordersSQL() string {
	return fmt.Sprintf("(SELECT * FROM %s.orders UNION ALL SELECT * FROM %s.orders) AS both_shards", s[0], s[1])
}

func (s shards) countDuplicates(ctx context.Context, db *sql.DB) (n int, err error) {
	err = db.QueryRowContext(ctx, "SELECT COUNT(*) - COUNT(DISTINCT id) FROM "+s.ordersSQL()).Scan(&n)
	return n, err
}

func (s shards) String() string { return strings.Join(s[:], ",") }
