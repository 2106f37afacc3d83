//go:build unix

// Command serve starts a private database server, runs a command with it and ends with the
// command:
//
//	go run ./testutil/mysqltest/serve -- go test ./...
//
// The command finds the server in LEAFSQL_TEST_DSN, and with -mysql a real MySQL in LEAFSQL_TEST_MYSQL_DSN. A variable
// that is already set is not changed. The command's TMPDIR is a folder that is removed with all its files when serve
// ends, even if serve is killed. The exit status is the command's.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"github.com/leafsql/leafsql/testutil/janitor"
	"github.com/leafsql/leafsql/testutil/mysqltest"
)

func main() {
	withMySQL := flag.Bool("mysql", false, "start a real MySQL as well, unless "+mysqltest.EnvServer+" names the only server")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "usage: serve [-mysql] -- command [argument ...]")
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() == 0 {
		flag.Usage()
		os.Exit(2)
	}
	status, err := serve(*withMySQL, flag.Args())
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(status)
}

func serve(withMySQL bool, command []string) (status int, err error) {
	// Ctrl-C also reaches the command; a signal to this process alone is passed on. Either way the command ends first.
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)

	tmp, err := os.MkdirTemp("", "leafsql-")
	if err != nil {
		return 1, fmt.Errorf("serve: %w", err)
	}
	cleaner, err := janitor.Start(tmp)
	if err != nil {
		return 1, errors.Join(err, os.Remove(tmp))
	}
	defer cleaner.Stop()
	os.Setenv("TMPDIR", tmp)

	wanted := []struct {
		env    string
		config mysqltest.Config
	}{{mysqltest.EnvDSN, mysqltest.Config{}}}
	if withMySQL && os.Getenv(mysqltest.EnvServer) == "" {
		wanted[0].config.Kind = mysqltest.MariaDB
		wanted = append(wanted, wanted[0])
		wanted[1].env, wanted[1].config.Kind = mysqltest.EnvMySQLDSN, mysqltest.MySQL
	}
	for _, w := range wanted {
		if os.Getenv(w.env) != "" {
			continue
		}
		server, startErr := mysqltest.Start(w.config)
		if startErr != nil {
			return 1, startErr
		}
		defer func() { err = errors.Join(err, server.Stop()) }()
		os.Setenv(w.env, server.DSN(""))
	}
	select {
	case <-signals:
		return 1, errors.New("serve: interrupted")
	default:
	}

	cmd := exec.Command(command[0], command[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	if err := cmd.Start(); err != nil {
		return 1, fmt.Errorf("serve: %w", err)
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	for {
		select {
		case sig := <-signals:
			cmd.Process.Signal(sig)
		case err := <-done:
			var exit *exec.ExitError
			switch {
			case err == nil:
				return 0, nil
			case errors.As(err, &exit):
				return max(1, exit.ExitCode()), nil // -1: ended by a signal
			default:
				return 1, fmt.Errorf("serve: %w", err)
			}
		}
	}
}
