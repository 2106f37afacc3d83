//go:build linux

// Command proxybench compares the proxy with HAProxy, which forwards bytes without reading them, and with a direct
// connection:
//
//	make bench-proxy
//	go run ./testutil/proxybench -time 2s -rounds 9 -only 'SELECT|rows'
//
// The server, the proxy, HAProxy and the clients share the same cores, so each takes time from the others. Each kind of
// work runs in rounds. Each round uses each of the three ways once, so a disturbance of the machine affects all of them.
// Processor time is the kernel's count for the processes of the server and of the proxy or HAProxy; unlike the elapsed
// times, it hardly depends on the other load of the machine.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"syscall"
	"time"
)

type options struct {
	time   time.Duration // time for one way in one round
	rounds int
	idle   int // number of connections
	only   *regexp.Regexp
}

func main() {
	if os.Getenv(proxyEnv) != "" {
		if err := runProxy(); err != nil {
			fmt.Fprintln(os.Stderr, "proxybench: the proxy:", err)
			os.Exit(1)
		}
		return
	}
	var opts options
	flag.DurationVar(&opts.time, "time", time.Second, "how long each round goes each way")
	flag.IntVar(&opts.rounds, "rounds", 7, "rounds of each kind of work")
	flag.IntVar(&opts.idle, "idle", 10_000, "connections that idle; 0: none")
	only := flag.String("only", "", "a regular expression: only the kinds of work whose names match it, and idle connections if it matches idle")
	flag.Parse()
	var err error
	if opts.only, err = regexp.Compile(*only); err == nil {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		defer stop()
		err = run(ctx, opts)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "proxybench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, opts options) error {
	most, err := raiseOpenFiles()
	if err != nil {
		return err
	}
	if opts.idle > most {
		fmt.Printf("The limit of open files is enough for %d connections.\n", most)
		opts.idle = most
	}
	set, err := start(100)
	if err != nil {
		return err
	}
	defer set.stop()
	fmt.Println(set.describe())
	var results []result
	for _, w := range works {
		if !opts.only.MatchString(w.name) {
			continue
		}
		r, err := w.measure(ctx, set, opts)
		if err != nil {
			return fmt.Errorf("%s: %w", w.name, err)
		}
		results = append(results, r)
		r.print(os.Stdout)
	}
	var idles []idleMemory
	if opts.idle > 0 && opts.only.MatchString("idle") {
		if idles, err = idleConnections(ctx, opts.idle); err != nil {
			return fmt.Errorf("idle connections: %w", err)
		}
	}
	if !printLimits(os.Stdout, results, idles) {
		return fmt.Errorf("not all of that holds")
	}
	return nil
}
