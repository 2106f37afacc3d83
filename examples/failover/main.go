// Command failover shows a fail-over of leaf_alloc that loses writes: the primary is killed while the replica lacks
// its last ranges. Two runs show this at the same time, one without the mark in leaf_alloc and one with it.
//
//	make demo-failover
//
// It starts five private MariaDB servers and throws them away afterwards.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"
)

func main() {
	if len(os.Args) > 1 {
		fmt.Fprintln(os.Stderr, "usage: failover; it takes no arguments")
		os.Exit(2)
	}
	// The first Ctrl-C cleans up, a second one ends the program.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	context.AfterFunc(ctx, stop)
	err := run(ctx, os.Stdout)
	switch {
	case ctx.Err() != nil:
		fmt.Fprintln(os.Stderr, "failover: interrupted, everything is cleaned up")
		os.Exit(130)
	case err != nil:
		fmt.Fprintln(os.Stderr, "failover:", err)
		os.Exit(1)
	}
}

// A demo contains the two runs, which are shown next to each other.
type demo struct {
	out   io.Writer
	began time.Time
	panes [2]*pane
}

func run(ctx context.Context, out io.Writer) (err error) {
	d := &demo{out: out, began: time.Now(), panes: [2]*pane{{marked: false}, {marked: true}}}
	fmt.Fprint(out, `leafsql: the primary of leaf_alloc dies, and its replica lacks the last ranges

Programs insert orders into two databases, with ids from one leaf_alloc. That has
an asynchronous replica. On the left the row in leaf_alloc has no mark.

`)
	shop, err := newShop()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, shop.Stop()) }()
	defer func() { err = errors.Join(err, d.each((*pane).close)) }()
	if err := d.each(func(p *pane) error { return p.open(ctx, shop) }); err != nil {
		return err
	}
	fmt.Fprintf(out, "%8s %26s %26s\n%8s %26s %26s\n", "", "without the mark", "with the mark", "", strings.Repeat("-", 24), strings.Repeat("-", 24))
	for _, act := range []struct {
		says string
		do   func(*pane, context.Context) error
		time time.Duration // time for inserts after the fail-over
	}{
		{"Three programs insert orders.", (*pane).start, time.Second},
		{"One of them has nothing to do.", (*pane).pauseFirstProgram, time.Second},
		{"The replica of leaf_alloc receives nothing any more.", (*pane).stopReplication, 2 * time.Second},
		{"They fetch ranges that the replica lacks.", (*pane).waitForLostRanges, time.Second},
		{"The primary is killed, the replica takes over. Three more programs start.", (*pane).failOver, 8 * time.Second},
	} {
		fmt.Fprintf(out, "%6.1f s  %s\n", time.Since(d.began).Seconds(), act.says)
		if err := d.each(func(p *pane) error { return act.do(p, ctx) }); err != nil {
			return err
		}
		if err := d.watch(ctx, act.time); err != nil {
			return err
		}
	}
	return d.finish(ctx)
}

// each calls f for both runs at the same time.
func (d *demo) each(f func(*pane) error) error {
	var errs [2]error
	var wg sync.WaitGroup
	for i, p := range d.panes {
		wg.Go(func() { errs[i] = f(p) })
	}
	wg.Wait()
	return errors.Join(errs[:]...)
}

// watch shows the progress for the time t.
func (d *demo) watch(ctx context.Context, t time.Duration) error {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for end := time.Now().Add(t); time.Now().Before(end); {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
		fmt.Fprintf(d.out, "%6.1f s %19d orders %19d orders\n", time.Since(d.began).Seconds(), d.panes[0].orders.Load(), d.panes[1].orders.Load())
	}
	return nil
}

// finish ends the programs and shows the ids in the databases.
func (d *demo) finish(ctx context.Context) error {
	if err := d.each((*pane).stop); err != nil {
		return err
	}
	var twice, refused [2]int64
	for i, p := range d.panes {
		var err error
		if twice[i], err = p.countDuplicates(ctx); err != nil {
			return err
		}
		refused[i] = p.duplicates.Load()
	}
	fmt.Fprintln(d.out)
	for _, line := range []struct {
		what  string
		count [2]int64
	}{
		{"ids that are in both databases", twice},
		{"INSERTs that failed with \"Duplicate entry\"", refused},
	} {
		fmt.Fprintf(d.out, "%8s %26d %26d  %s\n", "", line.count[0], line.count[1], line.what)
	}
	fmt.Fprintf(d.out, "\nWith the mark, the first id from the new primary came %d ms after that took writes,\nabove a margin that is larger than all that programs can hold in memory.\n", d.panes[1].first.Load())
	fmt.Fprintf(d.out, "\n%.0f seconds in all. docs/high-availability.md has the details.\n", time.Since(d.began).Seconds())
	if twice[1] > 0 || refused[1] > 0 {
		return errors.New("ids come twice with the mark")
	}
	return nil
}
