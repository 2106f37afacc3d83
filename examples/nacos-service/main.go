// Command nacos-service shows snowflake ids with worker ids from Nacos:
// three services registered in a real Nacos take orders while one of them is
// killed, one has its clock set back, and Nacos itself is killed.
//
//	make demo-nacos
//
// It starts a private Nacos and a private MariaDB or MySQL, and throws them
// away afterwards. service.go is what an application would look like; the rest
// runs the demo.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	if os.Getenv(serviceEnv) != "" {
		if err := serve(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	if len(os.Args) > 1 {
		fmt.Fprintln(os.Stderr, "usage: nacos-service; it takes no arguments")
		os.Exit(2)
	}
	// The first Ctrl-C cleans up, a second one ends the program at once.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	context.AfterFunc(ctx, func() {
		stop()
		fmt.Fprintln(os.Stderr, "\nnacos-service: ending what was started ...")
	})
	err := run(ctx, os.Stdout)
	var left cleanupError
	switch {
	case ctx.Err() != nil && !errors.As(err, &left):
		fmt.Fprintln(os.Stderr, "nacos-service: interrupted, everything is cleaned up")
		os.Exit(130)
	case err != nil:
		fmt.Fprintln(os.Stderr, "\nnacos-service:", err)
		os.Exit(1)
	}
}

// clockAhead is how far the clock of service c is ahead in runClockAhead.
const clockAhead = 10 * time.Minute

func run(ctx context.Context, out io.Writer) (err error) {
	began := time.Now()
	s := &stage{scr: newScreen(out)}
	defer func() { err = errors.Join(err, s.cleanUp()) }()
	s.scr.printf("%s\n", s.scr.bold("leafsql: three services on Nacos, worker ids on lease"))
	for _, act := range []func(context.Context) error{s.open, s.crashService, s.runClockAhead, s.killNacos, s.close} {
		if err := act(ctx); err != nil {
			return err
		}
	}
	s.scr.printf("\n%s\n", s.scr.dim(fmt.Sprintf("%.0f seconds in all.", time.Since(began).Seconds())))
	return nil
}

// open starts the servers and the services.
func (s *stage) open(ctx context.Context) error {
	s.scr.heading("1. Three services take orders")
	if err := s.build(ctx); err != nil {
		return err
	}
	s.scr.printLines(
		fmt.Sprintf("Nacos %s on %s and a database, private and throw-away.", s.nacos.Version, s.console.addr),
		"Each service registers itself in Nacos and opens its database with",
		`  sql.Open("mysql-leaf", ".../shop?leafTables=orders:id:snowflake"+`,
		fmt.Sprintf(`      "&leafWorker=nacos(%s)")`, s.console.addr), "")
	for i, name := range []string{"a", "b", "c"} {
		if err := s.launch(ctx, name, fmt.Sprintf("127.0.0.%d", 11+i), 0); err != nil {
			return err
		}
	}
	s.customers = openShop(ctx, s.console)
	sleep(ctx, 2*time.Second)
	return s.show(ctx)
}

// crashService kills b, which cannot release its worker id, and starts it at another
// address.
func (s *stage) crashService(ctx context.Context) error {
	s.scr.heading("2. b is killed with -9 and started on another host")
	before, err := s.leaseOf(ctx, "b")
	if err != nil {
		return err
	}
	s.deadServices[s.services["b"].addr] = "b"
	s.services["b"].kill9()
	delete(s.services, "b")
	began := time.Now()
	if err := s.launch(ctx, "b", "127.0.0.14", 0); err != nil {
		return err
	}
	if _, err := s.customers.awaitFirstOrder(ctx, "b"); err != nil {
		return err
	}
	s.scr.printLines(fmt.Sprintf("First order there %.1f s after the start. Worker id %d was not given back:", time.Since(began).Seconds(), before.worker),
		"nobody waits for it, as others are free.", "")
	return s.show(ctx)
}

// runClockAhead runs c with its clock ahead, and then with the right time.
func (s *stage) runClockAhead(ctx context.Context) error {
	s.scr.heading(fmt.Sprintf("3. c's clock is %.0f minutes ahead, and is set back", clockAhead.Minutes()))
	if err := s.endService("c"); err != nil {
		return err
	}
	if err := s.launch(ctx, "c", "127.0.0.13", clockAhead); err != nil {
		return err
	}
	s.scr.printLines("The clock of one process can't be set. Instead, each time that c reads or",
		"writes in a lease or puts into an id is shifted: others see no difference.",
		"As a rule such a process takes no worker id, and says so; this one has",
		"leafAnyClock=true.", "")
	sleep(ctx, 2*time.Second) // for some orders
	if err := s.show(ctx); err != nil {
		return err
	}
	before, err := s.leaseOf(ctx, "c")
	if err != nil {
		return err
	}
	if err := s.endService("c"); err != nil {
		return err
	}
	if err := s.launch(ctx, "c", "127.0.0.13", 0); err != nil {
		return err
	}
	if _, err := s.customers.awaitFirstOrder(ctx, "c"); err != nil {
		return err
	}
	doc, err := s.console.doc(ctx, before.worker)
	if err != nil {
		return err
	}
	s.scr.printLines("", "c runs again, with the right clock.",
		fmt.Sprintf("Worker id %d is free, but used up to %s: nobody gets it before.", before.worker, clockTime(doc.HighWater)), "")
	sleep(ctx, 2*time.Second)
	return s.show(ctx)
}

// killNacos kills Nacos and restarts it.
func (s *stage) killNacos(ctx context.Context) error {
	s.scr.heading("4. Nacos is killed with -9 and started again")
	bought, failed, _ := s.customers.sales()
	began := time.Now()
	s.nacos.Kill9()
	err := s.scr.showDuring("Nacos is away, orders go on", func() string {
		now, _, _ := s.customers.sales()
		return fmt.Sprintf("%d orders", now-bought)
	}, func() error { return s.nacos.Relaunch(ctx) })
	if err != nil {
		return err
	}
	nowBought, nowFailed, why := s.customers.sales()
	s.scr.printSuccess(fmt.Sprintf("%d orders while Nacos was away for %.0f s; %d calls failed", nowBought-bought, time.Since(began).Seconds(), nowFailed-failed))
	if nowFailed > failed {
		s.scr.printLines(wrap(fmt.Sprint("the last because: ", why))...)
	}
	return ctx.Err()
}

// close ends the services and counts the orders.
func (s *stage) close(ctx context.Context) error {
	s.scr.heading("5. Closing time")
	s.customers.close()
	for _, name := range s.names() {
		if err := s.endService(name); err != nil {
			return err
		}
	}
	return s.checkOrders(ctx)
}
