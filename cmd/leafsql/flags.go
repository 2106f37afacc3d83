package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"
	"sync/atomic"

	"github.com/leafsql/leafsql/cmd/leafsql/internal/databases"
	"github.com/leafsql/leafsql/cmd/leafsql/internal/screen"
	"github.com/leafsql/leafsql/cmd/leafsql/internal/survey"
)

// flags contains the flags of a subcommand, including those that most subcommands share.
type flags struct {
	*flag.FlagSet
	screen  *screen.Screen
	dsn     string
	dsnHint string // description of the required DSN, for errors
	shards  []string
	json    bool
}

func newFlags(s *screen.Screen, name string) *flags {
	f := &flags{FlagSet: flag.NewFlagSet("leafsql "+name, flag.ContinueOnError), screen: s, dsnHint: "the application's DSN"}
	return f
}

// withDSN adds the flag for a database.
func (f *flags) withDSN() *flags {
	f.StringVar(&f.dsn, "dsn", "", "the `DSN` as mysql-leaf takes it, or env:NAME")
	return f
}

// withShards adds the flags for databases and their shards.
func (f *flags) withShards() *flags {
	f.withDSN()
	f.Func("shard", "the `DSN` of another shard that takes ids from the same leaf_alloc; once for each", func(dsn string) error {
		f.shards = append(f.shards, dsn)
		return nil
	})
	return f
}

func (f *flags) withJSON() *flags {
	f.BoolVar(&f.json, "json", false, "write JSON")
	return f
}

// parse parses flags before and after the other arguments; arguments after -- are not flags. Its errors contain
// a hint. It fails if there are other arguments and takesArgs is false.
func (f *flags) parse(args []string, takesArgs bool) error {
	f.Usage = func() {}
	f.SetOutput(io.Discard) // errors are returned
	var others []string
	err := f.Parse(args)
	for err == nil && f.NArg() > 0 {
		if last := len(args) - f.NArg() - 1; last >= 0 && args[last] == "--" {
			others = append(others, f.Args()...)
			break
		}
		others, args = append(others, f.Arg(0)), f.Args()[1:]
		err = f.Parse(args)
	}
	if err == nil {
		err = f.Parse(append([]string{"--"}, others...)) // sets the result of Args
	}
	switch {
	case errors.Is(err, flag.ErrHelp):
		f.VisitAll(func(one *flag.Flag) { one.Usage = f.screen.Texts.Text(one.Usage) })
		f.SetOutput(f.screen)
		f.PrintDefaults()
		return err
	case err != nil:
		return fmt.Errorf("%s: %w; %s -h lists the flags", f.title(), err, f.Name())
	case !takesArgs && f.NArg() > 0:
		return fmt.Errorf("%s: it takes only flags; pass the DSN with -dsn, and %s -h lists the flags", f.title(), f.Name()) // the argument is not shown: it may be a DSN
	case f.Lookup("dsn") != nil && f.dsn == "":
		return fmt.Errorf("%s: no -dsn; give %s, for example -dsn 'user:password@tcp(127.0.0.1:3306)/shop?leafTables=orders', or -dsn env:NAME", f.title(), f.dsnHint)
	}
	if f.json { // JSON is English
		f.screen.Texts, f.screen.ForJSON = nil, true
	}
	return nil
}

// title returns the beginning of an error: leafsql: check.
func (f *flags) title() string { return strings.Replace(f.Name(), " ", ": ", 1) }

// takeSurvey surveys the databases of the flags. The caller has to close its Set.
func (f *flags) takeSurvey(ctx context.Context) (*survey.Survey, error) {
	var looked atomic.Int64
	defer f.screen.Progress(func() string { return f.screen.Sprintf("%d tables looked at", looked.Load()) })()
	set, err := databases.Open(ctx, f.dsn, f.shards)
	if err != nil {
		return nil, err
	}
	s, err := survey.Take(ctx, set, "", func() { looked.Add(1) })
	if err != nil {
		set.Close()
	}
	return s, err
}
