// Command leafsql looks after databases whose tables get their keys from mysql-leaf.
//
//	go install github.com/leafsql/leafsql/cmd/leafsql@latest
//	leafsql serve -dsn 'user:password@tcp(127.0.0.1:3306)/shop'
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
)

type command struct {
	name, summary string
	run           func(ctx context.Context, out io.Writer, args []string) error
}

var commands = []command{
	{"serve", "give ids over HTTP, as Java Leaf does, with a page and metrics", runServe},
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	os.Exit(run(ctx, os.Args[1:]))
}

func run(ctx context.Context, args []string) int {
	for _, c := range commands {
		if len(args) > 0 && c.name == args[0] {
			err := c.run(ctx, os.Stdout, args[1:])
			if err != nil && !errors.Is(err, flag.ErrHelp) {
				fmt.Fprintln(os.Stderr, err)
				return 2
			}
			return 0
		}
	}
	fmt.Fprintln(os.Stderr, "Usage: leafsql SUBCOMMAND [flags]; leafsql SUBCOMMAND -h lists the flags")
	for _, c := range commands {
		fmt.Fprintf(os.Stderr, "  %-8s%s\n", c.name, c.summary)
	}
	return 2
}
