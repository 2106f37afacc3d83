//go:build unix

// Command conformance runs the test suites of other projects through
// mysql-leaf:
//
//	go run ./testutil/conformance                    # all
//	go run ./testutil/conformance -v go-sql-driver   # one
//
// The suite of go-sql-driver also runs on go-sql-driver through the proxy.
//
// The suite of a driver or an ORM runs on go-sql-driver itself, through
// mysql-leaf without configured tables, and through mysql-leaf that adds keys to the
// rows of every table that it can. Tables without a key get a hidden key column, which
// mysql-leaf fills. This run is compared with a run on go-sql-driver in which the hidden
// column has AUTO_INCREMENT.
//
// The suite of a program runs on go-sql-driver itself, and twice through
// mysql-leaf: with AUTO_INCREMENT left in the program's tables, and with
// AUTO_INCREMENT dropped from them. A control run on go-sql-driver with
// AUTO_INCREMENT dropped shows how many tests need the ids.
//
// A test that passes on go-sql-driver has to pass in each run, or be listed in
// excluded.txt with the reason.
//
// Suites of modules are copied from the module cache. A program is fetched from
// its repository, and only if it is named. Both are written to a temporary
// folder and are not part of this repository.
package main

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/leafsql/leafsql/testutil/mysqltest"
)

func main() {
	kinds := flag.String("server", "mariadb,mysql", "the servers")
	verbose := flag.Bool("v", false, "show the output of tests that differ")
	dir := flag.String("dir", "", "work in this folder and keep it, with the output of each run; default: a temporary one")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "usage: conformance [-server kind,…] [-v] [-dir folder] [peer ...]")
		flag.PrintDefaults()
		for _, p := range peers {
			fmt.Fprintf(flag.CommandLine.Output(), "peer: %s\n", p.name)
		}
	}
	flag.Parse()
	ok, err := runPeers(strings.Split(*kinds, ","), flag.Args(), *verbose, *dir)
	if err != nil {
		fmt.Fprintln(os.Stderr, "conformance:", err)
	}
	if !ok {
		os.Exit(1)
	}
}

func runPeers(kinds, names []string, verbose bool, dir string) (ok bool, err error) {
	chosen, err := selectPeers(names)
	if err != nil {
		return false, err
	}
	if dir == "" {
		if dir, err = os.MkdirTemp("", "leafsql-conformance-"); err != nil {
			return false, err
		}
		defer os.RemoveAll(dir)
	}
	var servers []*mysqltest.Server
	for _, kind := range kinds {
		server, err := mysqltest.Start(mysqltest.Config{Kind: mysqltest.Kind(kind)})
		if err != nil {
			return false, err
		}
		defer server.Stop()
		servers = append(servers, server)
	}
	ok = true
	for _, p := range chosen {
		started := time.Now()
		bins, err := p.build(dir)
		if err != nil {
			return false, fmt.Errorf("%s: %w", p.name, err)
		}
		fmt.Printf("%s: built in %.0f s\n", p.name, time.Since(started).Seconds())
		for _, server := range servers {
			for _, b := range bins {
				conforms, err := p.compareModes(b, server, verbose)
				if err != nil {
					return false, fmt.Errorf("%s: %w", p.name, err)
				}
				ok = ok && conforms
			}
		}
	}
	return ok, nil
}

// selectPeers returns the peers of these names. Without names it returns the peers
// that are modules.
func selectPeers(names []string) (chosen []peer, err error) {
	for _, p := range peers {
		if slices.Contains(names, p.name) || len(names) == 0 && p.module != "" {
			chosen = append(chosen, p)
		}
	}
	for _, name := range names {
		if !slices.ContainsFunc(peers, func(p peer) bool { return p.name == name }) {
			return nil, fmt.Errorf("no peer %q", name)
		}
	}
	return chosen, nil
}
