// Command leafsql maintains databases with tables that get their keys from mysql-leaf.
//
//	go install github.com/leafsql/leafsql/cmd/leafsql@latest
//	leafsql help
//
// Only leafsql proxy adds keys to rows. A subcommand makes only the changes that its help describes.
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
	"github.com/leafsql/leafsql/internal/chinese"
)

// A command is a subcommand. run returns the process's exit code; with an error the code is exitFailure.
type command struct {
	name, args, summary, example string
	run                          func(ctx context.Context, s *screen.Screen, args []string) (status int, err error)
	changesData                  bool // it changes databases, and continues after the reader of its output has closed the pipe
}

var commands = []command{
	{"check", "-dsn DSN [-shard DSN]…", "find problems of tables and leaf_alloc, with the SQL that fixes them",
		"check -dsn 'app:secret@tcp(127.0.0.1:3306)/shop?leafTables=orders'", runCheck, false},
	{"init", "-dsn DSN [-shard DSN]… [-dry-run]", "create leaf_alloc, and rows above the highest key of all shards",
		"init -dsn 'root:secret@tcp(127.0.0.1:3306)/shop?leafTables=orders' -dry-run", runInit, true},
	{"migrate", "-dsn DSN [-shard DSN]… [-do STEP | -back] TABLE…", "take tables from AUTO_INCREMENT, or from Java Leaf, step by step",
		"migrate -dsn 'root:secret@tcp(127.0.0.1:3306)/shop' orders", runMigrate, true},
	{"decode", "ID… | -", "decode snowflakes into time, worker id and sequence",
		"decode 2083449872341008385", runDecode, false},
	{"tags", "-dsn DSN [-watch]", "show leaf_alloc's rows, and how fast their ids go",
		"tags -dsn 'app:secret@tcp(127.0.0.1:3306)/shop' -watch", runTags, false},
	{"workers", "-dsn DSN", "list worker ids with their holders and lease ends",
		"workers -dsn 'app:secret@tcp(127.0.0.1:3306)/shop?leafWorker=etcd(127.0.0.1:2379)'", runWorkers, false},
	{"bench", "-dsn DSN", "compare INSERTs with those of AUTO_INCREMENT, in separate tables",
		"bench -dsn 'root:secret@tcp(127.0.0.1:3306)/test' -for 10s", runBench, true},
	{"serve", "-dsn DSN [-listen ADDRESS]", "give ids over HTTP, as Java Leaf does, with a page and metrics",
		"serve -dsn 'app:secret@tcp(127.0.0.1:3306)/shop' -listen 127.0.0.1:8080", runServe, false},
	{"proxy", "-dsn DSN [-listen ADDRESS]… [-server ADDRESS]", "fill the INSERTs of programs in any language, which connect to it as to their server",
		"proxy -dsn 'leaf:secret@tcp(127.0.0.1:3306)/shop?leafTables=*' -listen 127.0.0.1:3307", runProxy, false},
	{"completion", "bash | zsh | fish", "write the script by which a shell completes subcommands and flags",
		"completion bash > /etc/bash_completion.d/leafsql", nil, false},
	{"version", "", "print the version of leafsql",
		"version -json", runVersion, false},
}

// init breaks an initialization cycle: the scripts of completion contain all subcommands.
func init() {
	commands[slices.IndexFunc(commands, func(c command) bool { return c.name == "completion" })].run = runCompletion
}

func main() {
	mysql.SetLogger(&mysql.NopLogger{}) // errors are returned
	redis.SetLogger(discardLogger{})
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process immediately
	if len(os.Args) > 1 && slices.ContainsFunc(commands, func(c command) bool { return c.name == os.Args[1] && c.changesData }) {
		signal.Ignore(syscall.SIGPIPE)
	}
	s := screen.New(os.Stdout, os.Stderr)
	s.Texts = localeTexts(os.Getenv)
	os.Exit(run(ctx, s, os.Args[1:]))
}

func run(ctx context.Context, s *screen.Screen, args []string) int {
	switch {
	case len(args) == 0:
		usage(s)
		return exitFailure
	case args[0] == "-version" || args[0] == "--version":
		args[0] = "version"
	case len(args) > 1 && args[0] == "help" && args[1] != "help":
		args = []string{args[1], "-h"}
	}
	for _, c := range commands {
		if c.name != args[0] {
			continue
		}
		if len(args) > 1 && help[args[1]] {
			s.Printf("Usage: leafsql %s\n  %s\n", strings.TrimSpace(c.name+" "+c.args), s.Texts.Text(c.summary))
			s.PrintSource(s.Sprintf("\nExample: leafsql %s\nMore: %s\n\n", c.example, c.pageURL(s.Texts))) // to be copied
		}
		status, err := c.run(ctx, s, args[1:])
		switch written := s.WriteErr(); {
		case errors.Is(err, flag.ErrHelp):
			return exitOK
		case written != nil && !(c.changesData && errors.Is(written, syscall.EPIPE)): // if the reader closed the pipe, the changes were made nevertheless
			s.PrintErr(fmt.Errorf("leafsql: %s: write the output: %w; redirect it to another file", c.name, written))
			return exitFailure
		case err != nil && ctx.Err() != nil && !strings.HasPrefix(err.Error(), "leafsql: "):
			s.PrintErr(fmt.Errorf("leafsql: %s: interrupted; run it again", c.name))
			return exitFailure
		case err != nil:
			s.PrintErr(err)
			return exitFailure
		}
		return status
	}
	if args[0] == "help" || help[args[0]] {
		usage(s)
		return exitOK
	}
	s.PrintErr(fmt.Errorf("leafsql: %q is not a subcommand; leafsql help lists them", args[0]))
	return exitFailure
}

// pageURL returns the address of a subcommand's documentation.
func (c command) pageURL(texts chinese.Texts) string {
	docs := texts.Text("https://github.com/leafsql/leafsql/blob/main/docs/")
	if c.name == "serve" || c.name == "proxy" {
		return docs + c.name + ".md"
	}
	return docs + "command.md#" + c.name
}

// discardLogger discards the log of a client, which returns its errors.
type discardLogger struct{}

func (discardLogger) Printf(context.Context, string, ...any) {}

// help contains the flags for help, as in package flag.
var help = map[string]bool{"-h": true, "-help": true, "--h": true, "--help": true}

func usage(s *screen.Screen) {
	s.Printf("Usage: leafsql SUBCOMMAND [flags]\n\n")
	for _, c := range commands {
		s.Printf("  %s\n  %-11s%s\n", strings.TrimSpace(fmt.Sprintf("%-11s%s", c.name, c.args)), "", s.Texts.Text(c.summary))
	}
	s.Printf(`
leafsql help SUBCOMMAND lists its flags, with an example.
A DSN is that of mysql-leaf, with its leaf… parameters:
  'user:password@tcp(127.0.0.1:3306)/shop?leafTables=orders'
env:NAME is a DSN in an environment variable, where other users do not see it.

Exit codes: 0 no problems, 1 something to fix, 2 the command failed.
`)
}
