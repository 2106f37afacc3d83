// Command leafsql looks after databases whose tables get their keys from mysql-leaf.
//
//	go install github.com/leafsql/leafsql/cmd/leafsql@latest
//	leafsql help
//
// It fills no table itself, and changes nothing but what a subcommand that is named so
// says it changes.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/go-sql-driver/mysql"
	"github.com/redis/go-redis/v9"

	"github.com/leafsql/leafsql/cmd/leafsql/internal/screen"
)

// A command's status is the process's exit code; an error's is unclear.
type command struct {
	name, args, summary string
	run                 func(ctx context.Context, s *screen.Screen, args []string) (status int, err error)
	writes              bool // to databases: it goes on when nobody reads its output any more
}

// Exit codes of all subcommands.
const (
	fine    = 0
	mend    = 1 // something is to be mended
	unclear = 2 // it could not be told, or done
)

var commands = []command{
	{"check", "-dsn DSN [-shard DSN]…", "find what is wrong with tables and leaf_alloc, with the SQL that mends it", runCheck, false},
	{"init", "-dsn DSN [-shard DSN]… [-dry-run]", "create leaf_alloc, and rows above the highest key of all shards", runInit, true},
	{"migrate", "-dsn DSN [-shard DSN]… [-do STEP | -back] TABLE…", "take tables from AUTO_INCREMENT, or from Java Leaf, step by step", runMigrate, true},
	{"decode", "ID…", "say what snowflakes hold: time, worker id, sequence", runDecode, false},
	{"tags", "-dsn DSN [-watch]", "show leaf_alloc's rows, and how fast their ids go", runTags, false},
	{"workers", "-dsn DSN", "show who holds which worker id, and until when", runWorkers, false},
	{"bench", "-dsn DSN", "compare INSERTs with AUTO_INCREMENT's, in tables of its own", runBench, true},
	{"serve", "-dsn DSN [-listen ADDRESS]", "give ids over HTTP, as Java Leaf does, with a page and metrics", runServe, false},
	{"version", "", "say which leafsql this is", runVersion, false},
}

func main() {
	mysql.SetLogger(&mysql.NopLogger{}) // errors are returned
	redis.SetLogger(quiet{})
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	if len(os.Args) > 1 && slices.ContainsFunc(commands, func(c command) bool { return c.name == os.Args[1] && c.writes }) {
		signal.Ignore(syscall.SIGPIPE)
	}
	s := screen.New(os.Stdout, os.Stderr)
	s.Texts = texts(os.Getenv)
	os.Exit(run(ctx, s, os.Args[1:]))
}

func run(ctx context.Context, s *screen.Screen, args []string) int {
	switch {
	case len(args) == 0:
		usage(s)
		return unclear
	case args[0] == "-version" || args[0] == "--version":
		args[0] = "version"
	}
	for _, c := range commands {
		if c.name != args[0] {
			continue
		}
		if len(args) > 1 && help[args[1]] {
			s.Printf("Usage: leafsql %s\n  %s\n", strings.TrimSpace(c.name+" "+c.args), s.Texts.Text(c.summary))
		}
		status, err := c.run(ctx, s, args[1:])
		switch written := s.Failed(); {
		case errors.Is(err, flag.ErrHelp):
			return fine
		case written != nil && !(c.writes && errors.Is(written, syscall.EPIPE)): // which did what it is for
			fmt.Fprintf(s.Err, "leafsql: %s: writing the output: %v; write it elsewhere\n", c.name, written)
			return unclear
		case err != nil && ctx.Err() != nil && !strings.HasPrefix(err.Error(), "leafsql: "):
			fmt.Fprintf(s.Err, "leafsql: %s: interrupted; run it again\n", c.name)
			return unclear
		case err != nil:
			fmt.Fprintln(s.Err, err)
			return unclear
		}
		return status
	}
	if args[0] == "help" || help[args[0]] {
		usage(s)
		return fine
	}
	fmt.Fprintf(s.Err, "leafsql: %q is no subcommand; leafsql help lists them\n", args[0])
	return unclear
}

// quiet is a logger of a client whose errors are returned.
type quiet struct{}

func (quiet) Printf(context.Context, string, ...any) {}

// help are the flags that ask for it, as package flag knows them.
var help = map[string]bool{"-h": true, "-help": true, "--h": true, "--help": true}

func usage(s *screen.Screen) {
	s.Printf("Usage: leafsql SUBCOMMAND [flags]\n\n")
	for _, c := range commands {
		s.Printf("  %s\n  %-8s%s\n", strings.TrimSpace(fmt.Sprintf("%-8s%s", c.name, c.args)), "", s.Texts.Text(c.summary))
	}
	s.Printf(`
leafsql SUBCOMMAND -h lists the flags.
A DSN is that of mysql-leaf, with its leaf… parameters:
  'user:password@tcp(127.0.0.1:3306)/shop?leafTables=orders'
env:NAME is a DSN in an environment variable, where other users do not see it.

Exit codes: 0 fine, 1 something to mend, 2 it could not be told or done.
`)
}
