package main

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// goEnv is the environment variable that makes this program the program in Go.
const goEnv = "LEAFSQL_LANGUAGES_GO"

//go:embed orders.php orders.py Orders.java orders.js
var sources embed.FS

// A program writes orders. testutil/clients/install.sh all installs the
// requirements.
type program struct {
	name    string
	command func(dir, installed string) *exec.Cmd // dir contains the sources
}

var programs = []program{
	{"PHP", func(dir, _ string) *exec.Cmd { return exec.Command("php", filepath.Join(dir, "orders.php")) }},
	{"Python", func(dir, _ string) *exec.Cmd {
		return exec.Command("/usr/bin/python3", filepath.Join(dir, "orders.py"))
	}},
	{"Java", func(dir, installed string) *exec.Cmd {
		return exec.Command("java", "-cp", filepath.Join(installed, "java", "*"), filepath.Join(dir, "Orders.java"))
	}},
	{"Node", func(dir, installed string) *exec.Cmd {
		cmd := exec.Command("node", filepath.Join(dir, "orders.js"))
		cmd.Env = []string{"NODE_PATH=" + filepath.Join(installed, "node", "node_modules")}
		return cmd
	}},
	{"Go", func(string, string) *exec.Cmd {
		self, err := os.Executable()
		if err != nil {
			self = os.Args[0]
		}
		cmd := exec.Command(self)
		cmd.Env = []string{goEnv + "=yes"}
		return cmd
	}},
}

// runAll runs all programs at the same time, and returns how long each of them wrote.
func runAll(ctx context.Context, addr string, s shards, rows int) (took []time.Duration, err error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "leafsql-languages-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	if err := os.CopyFS(dir, sources); err != nil {
		return nil, err
	}
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // ends the others if one of them fails
	errs := make(chan error)
	took = make([]time.Duration, len(programs))
	for i, p := range programs {
		cmd := p.command(dir, filepath.Join(cache, "leafsql", "clients"))
		cmd.Env = append(os.Environ(), append(cmd.Env, "DB_HOST="+host, "DB_PORT="+port, "DB_USER="+user, "DB_PASSWORD="+password,
			"SHARDS="+s.String(), "ROWS="+strconv.Itoa(rows))...)
		go func() {
			var err error
			took[i], err = p.run(ctx, cmd)
			errs <- err
		}()
	}
	for range programs {
		if e := <-errs; e != nil {
			cancel()
			err = errors.Join(err, e)
		}
	}
	return took, err
}

// run returns the time that the program reports.
func (p program) run(ctx context.Context, cmd *exec.Cmd) (time.Duration, error) {
	var out, problems bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &problems
	err := cmd.Start()
	if err == nil {
		stop := context.AfterFunc(ctx, func() { cmd.Process.Kill() })
		err = cmd.Wait()
		stop()
	}
	if err != nil {
		return 0, fmt.Errorf("the program in %s: %w; testutil/clients/install.sh all installs what it needs\n%s", p.name, err, &problems)
	}
	seconds, err := strconv.ParseFloat(strings.TrimSpace(out.String()), 64)
	if err != nil {
		return 0, fmt.Errorf("the program in %s: %w", p.name, err)
	}
	return time.Duration(seconds * float64(time.Second)), nil
}
