// Command quickstart shows the purpose of leafsql: one shop on two databases, first with AUTO_INCREMENT and then with
// ids from leaf_alloc, and the cost of the latter.
//
//	make demo
//	LEAFSQL_DSN='user:password@tcp(127.0.0.1:3306)/' make demo
//
// Without LEAFSQL_DSN it starts a private MariaDB or MySQL server and throws it away afterwards. With it, everything happens
// in databases that it creates and drops.
//
// While it runs it shows the status page of its own process. In a terminal the shop and the page stay open after the last
// step, until Ctrl-C.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/term"

	"github.com/leafsql/leafsql/driver"
)

type options struct {
	dsn       string
	orders    int
	processes int
	rounds    int
	patience  time.Duration // time after which no further round begins
	listen    string        // address of the page; "": 127.0.0.1 with a free port
	stay      bool          // keep the shop and its page open after the last step
}

func main() {
	if os.Getenv(workerEnv) != "" {
		work(os.Stdin, os.Stdout)
		return
	}
	opts := options{dsn: os.Getenv("LEAFSQL_DSN"), rounds: 10, patience: time.Minute}
	flag.IntVar(&opts.orders, "orders", 100_000, "orders to insert with each driver")
	flag.IntVar(&opts.processes, "processes", 4, "processes that insert them at once")
	flag.StringVar(&opts.listen, "listen", "", "`address` of the page (default 127.0.0.1 and a free port)")
	flag.BoolVar(&opts.stay, "stay", term.IsTerminal(int(os.Stdout.Fd())), "keep the page open after the last step, until Ctrl-C; the default in a terminal")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "usage: quickstart [flags]; LEAFSQL_DSN=user:password@tcp(host:port)/ names a server of your own")
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() > 0 || opts.orders < 1 || opts.processes < 1 {
		flag.Usage()
		os.Exit(2)
	}

	// The first Ctrl-C cleans up, a second one ends the program at once.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	context.AfterFunc(ctx, stop)
	err := run(ctx, os.Stdout, opts)
	var left cleanupError
	switch {
	case err != nil && ctx.Err() != nil && !errors.As(err, &left):
		fmt.Fprintln(os.Stderr, "\nquickstart: interrupted, everything is cleaned up")
		os.Exit(130)
	case err != nil:
		fmt.Fprintln(os.Stderr, "\nquickstart:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer, opts options) (err error) {
	scr := newScreen(out)
	start := time.Now()
	scr.printf("%s\n", scr.bold("leafsql: one shop, two databases"))
	srv, err := openServer(ctx, opts.dsn)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, srv.cleanUp()) }()
	scr.printf("%s\n", srv.describe())

	plain, leaf, err := variants(srv)
	defer plain.close()
	defer leaf.close()
	if err != nil {
		return err
	}
	// Both shards share the tags; the tables are those of shard a.
	page, err := openSite(ctx, leaf.pools[0], "shop, shard a", opts.listen)
	if err != nil {
		return err
	}
	defer page.stop()
	if err := showCollision(ctx, scr, srv, plain); err != nil {
		return err
	}
	if err := showAgreement(ctx, scr, srv, leaf); err != nil {
		return err
	}
	scr.printf("   The page of this process: %s\n", page.url)
	if err := compareDrivers(ctx, scr, srv, plain, leaf, opts); err != nil {
		return err
	}
	scr.printf("\n%s\n", scr.dim(fmt.Sprintf("%.1f seconds in all.", time.Since(start).Seconds())))
	if opts.stay {
		scr.printf("Orders are still inserted into both shards, so the numbers on the page change.\nThe page of this process: %s %s press Ctrl-C to end\n", page.url, scr.dash())
		return leaf.keepRunning(ctx)
	}
	return nil
}

// showCollision runs the shop in the usual way, and shows why that fails with a second database.
func showCollision(ctx context.Context, scr *screen, srv *server, v variant) error {
	scr.heading("1. Two shards with AUTO_INCREMENT")
	scr.printf("     sql.Open(%q, \".../shop_a\")\n", v.driverName)
	if err := v.runFirstDay(ctx, scr, srv.db); err != nil {
		return err
	}
	scr.printf("   Merging the shards into one database:\n")
	switch err := v.merge(ctx, srv.db); {
	case err == nil:
		return errors.New("the ids of two AUTO_INCREMENT shards did not collide; is auto_increment_increment set on this server?")
	case !isCollision(err):
		return err
	default:
		scr.printFailure(err.Error())
	}
	return nil
}

// showAgreement runs the same code with the other driver.
func showAgreement(ctx context.Context, scr *screen, srv *server, v variant) error {
	scr.heading("2. The same code, another driver name, and no AUTO_INCREMENT")
	scr.printf("     sql.Open(%q, \".../shop_a?leafCreate=true\"+\n", v.driverName)
	scr.printf("         \"&leafTables=customers,products,orders,order_items\"+\n")
	scr.printf("         \"&leafStore=...\") %s\n", scr.dim("// where leaf_alloc is, the same for all shards"))
	if err := v.runFirstDay(ctx, scr, srv.db); err != nil {
		return err
	}
	scr.printf("   Merging the shards into one database:\n")
	if err := v.merge(ctx, srv.db); err != nil {
		return err
	}
	orders, whole, err := countWholeOrders(ctx, srv.db, v.merged)
	if err != nil {
		return err
	}
	if whole != orders {
		return fmt.Errorf("only %d of %d merged orders are whole", whole, orders)
	}
	scr.printSuccess(fmt.Sprintf("%d orders of both shards, each with its customer and all of its items", orders))
	return nil
}

// compareDrivers inserts the same number of orders with each driver. The drivers take turns, because the speed of
// a machine varies.
func compareDrivers(ctx context.Context, scr *screen, srv *server, plain, leaf variant, opts options) error {
	scr.heading(fmt.Sprintf("3. %d processes insert %s orders at once, with each driver", opts.processes, formatThousands(opts.orders)))
	crew, err := startWorkers(ctx, opts.processes)
	if err != nil {
		return err
	}
	defer crew.stop()
	results := []*result{{variant: plain}, {variant: leaf}}
	var bars []*bar
	for _, r := range results {
		r.bar = &bar{label: r.driverName, total: opts.orders}
		bars = append(bars, r.bar)
		if r.before, err = srv.count(ctx, r.names, "COUNT(*)"); err != nil {
			return err
		}
	}
	scr.draw(bars)
	start := time.Now()
	for round := range opts.rounds {
		if round > 0 && time.Since(start) > opts.patience {
			scr.printf("   Enough after %.0f seconds: this server takes long to write a row.\n", time.Since(start).Seconds())
			break
		}
		for i := range results {
			r := results[(round+i)%len(results)] // each driver is first in turn
			share := opts.orders * (round + 1) / opts.rounds
			if err := r.insert(crew, share-r.bar.done, func() { scr.draw(bars) }); err != nil {
				return err
			}
		}
	}
	const row = "%-10s  %7s  %7s %5s  %8s  %18s  %10s"
	scr.printf("\n   %s\n", scr.bold(fmt.Sprintf(row, "driver", "orders", "rows/s", "", "vs mysql", "leaf_alloc fetches", "duplicates")))
	for _, r := range results {
		rows, err := srv.count(ctx, r.names, "COUNT(*)")
		if err != nil {
			return err
		}
		duplicates, err := srv.count(ctx, r.names, "COUNT(*) - COUNT(DISTINCT id)")
		if err != nil {
			return err
		}
		fetches := "-"
		if r.driverName == driver.Name {
			fetches = formatThousands(int(crew.fetches()))
		}
		scr.printf("   "+row+"\n", r.driverName, formatThousands(rows-r.before), formatThousands(int(r.bar.rate())), fmt.Sprintf("%s%.0f%%", scr.plusMinus(), 100*r.spread()),
			fmt.Sprintf("%.2f", r.bar.rate()/bars[0].rate()), fetches, formatThousands(duplicates))
		switch {
		case rows-r.before != r.bar.done:
			return fmt.Errorf("%s: %d orders are there, want %d", r.driverName, rows-r.before, r.bar.done)
		case r.driverName == driver.Name && duplicates != 0:
			return fmt.Errorf("%s: %d duplicate ids", r.driverName, duplicates)
		}
	}
	scr.printf("   %s\n", scr.dim("One row a statement; "+scr.plusMinus()+" is the farthest of the rounds. Duplicates are ids that"))
	scr.printf("   %s\n", scr.dim("occur once more, counted by the database over both shards."))
	return nil
}
