//go:build unix

// Command conformance runs the test suites of other projects through
// mysql-leaf:
//
//	go run ./testutil/conformance                    # all
//	go run ./testutil/conformance -v go-sql-driver   # one
//
// Each suite runs on go-sql-driver itself, through mysql-leaf that fills
// nothing, and through mysql-leaf that fills every table it can. A test that
// passes on go-sql-driver has to pass each time, or stand in excluded.txt with
// the reason. Where the suite's tables have no keys, they are filled through a
// hidden one, and held against a run of go-sql-driver in which that column has
// AUTO_INCREMENT.
//
// The suites are copied from the module cache into a temporary folder; nothing
// of theirs is part of this repository.
package main

import (
	"flag"
	"fmt"
	"os"
	"slices"

	"github.com/leafsql/leafsql/testutil/mysqltest"
)

func main() {
	kind := flag.String("server", "mariadb", "mariadb or mysql")
	verbose := flag.Bool("v", false, "show the output of tests that differ")
	keep := flag.Bool("keep", false, "keep the temporary folder and say where it is")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "usage: conformance [-server kind] [-v] [-keep] [peer ...]")
		flag.PrintDefaults()
		for _, p := range peers {
			fmt.Fprintf(flag.CommandLine.Output(), "peer: %s\n", p.name)
		}
	}
	flag.Parse()
	ok, err := conform(mysqltest.Kind(*kind), flag.Args(), *verbose, *keep)
	if err != nil {
		fmt.Fprintln(os.Stderr, "conformance:", err)
	}
	if !ok {
		os.Exit(1)
	}
}

func conform(kind mysqltest.Kind, names []string, verbose, keep bool) (ok bool, err error) {
	for _, name := range names {
		if !slices.ContainsFunc(peers, func(p peer) bool { return p.name == name }) {
			return false, fmt.Errorf("no peer %q", name)
		}
	}
	dir, err := os.MkdirTemp("", "leafsql-conformance-")
	if err != nil {
		return false, err
	}
	if keep {
		fmt.Println("in", dir)
	} else {
		defer os.RemoveAll(dir)
	}
	server, err := mysqltest.Start(mysqltest.Config{Kind: kind})
	if err != nil {
		return false, err
	}
	defer server.Stop()
	ok = true
	for _, p := range peers {
		if len(names) > 0 && !slices.Contains(names, p.name) {
			continue
		}
		conforms, err := p.conforms(dir, server, verbose)
		if err != nil {
			return false, fmt.Errorf("%s: %w", p.name, err)
		}
		ok = ok && conforms
	}
	return ok, nil
}
