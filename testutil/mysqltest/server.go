//go:build unix

package mysqltest

import (
	"bytes"
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/leafsql/leafsql/testutil/freeport"
	"github.com/leafsql/leafsql/testutil/freeze"
	"github.com/leafsql/leafsql/testutil/janitor"
)

// Config selects the server to start.
type Config struct {
	Kind    Kind     // MariaDB or MySQL; empty: the one that is installed, MariaDB first
	Args    []string // further options, such as "--log-bin" or "--max-connections=5"; they override the defaults
	GroupID int      // the operating system's group of the process, for rules of a firewall, which needs root; 0: the group of this process
}

// A Server is a private server process. It is not safe for concurrent use.
type Server struct {
	bin     binary
	args    []string
	groupID int
	dir     string // data, socket and log; removed by Stop
	port    int
	proc    *os.Process // nil while not running
	mysql   *Server     // in which Vitess keeps its rows; otherwise nil
	janitor *janitor.Janitor
}

// startTimeout is long, since the machine may be busy with other tests.
const startTimeout = 4 * time.Minute

// Start starts a server with an empty data directory and waits until it answers. The caller ends it with Stop; if the
// process ends without calling Stop, the server and its files are removed as well.
func Start(cfg Config) (*Server, error) {
	s, err := Prepare(cfg)
	if err != nil {
		return nil, err
	}
	if err := s.startOnFreePort(); err != nil {
		s.Stop()
		return nil, err
	}
	return s, nil
}

// Prepare creates a server with an empty data directory and a port, for Launch to
// start. The caller ends it with Stop.
func Prepare(cfg Config) (*Server, error) {
	bin, err := findBinary(cfg.Kind, searchPath())
	if err != nil {
		return nil, err
	}
	if i := slices.IndexFunc(cfg.Args, func(arg string) bool { return !slices.Contains(durableOptions, arg) }); bin.tidb && i >= 0 {
		return nil, &optionError{cfg.Args[i]}
	}
	return prepare(bin, cfg)
}

func prepare(bin binary, cfg Config) (*Server, error) {
	dir, err := tempDir()
	if err != nil {
		return nil, fmt.Errorf("mysqltest: %w", err)
	}
	s := &Server{bin: bin, args: cfg.Args, groupID: cfg.GroupID, dir: dir}
	if s.janitor, err = janitor.Start(dir); err != nil {
		os.RemoveAll(dir)
		return nil, err
	}
	if s.port, err = freeport.Find(); err == nil {
		if bin.vitess {
			err = s.startMySQL()
		} else {
			err = bin.prepareData(s.DataDir())
		}
	}
	if err != nil {
		s.Stop()
		return nil, err
	}
	return s, nil
}

// durableOptions are options that TiDB lacks, although it behaves as if they were set.
var durableOptions = []string{"--innodb-flush-log-at-trx-commit=1", "--sync-binlog=1"}

// An optionError is the error of starting TiDB with an option of MySQL.
type optionError struct{ option string }

func (e *optionError) Error() string { return "mysqltest: TiDB has no option " + e.option }

// Run starts a server for one test and stops it when the test ends. It skips the test if the server is TiDB and cfg has
// options that TiDB lacks.
func Run(t testing.TB, cfg Config) *Server {
	t.Helper()
	s, err := Start(cfg)
	if options := (*optionError)(nil); errors.As(err, &options) {
		t.Skip(Lacks + options.option)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// Kind returns MariaDB or MySQL.
func (s *Server) Kind() Kind { return s.bin.kind }

// Version returns the server's name and version, such as "MySQL 8.0.33".
func (s *Server) Version() (string, error) {
	number := regexp.MustCompile(`\d+\.\d+\.\d+`).FindString(s.bin.version)
	if number == "" {
		return "", fmt.Errorf("mysqltest: no version in %q", s.bin.version)
	}
	switch {
	case s.bin.tidb:
		return "TiDB " + number, nil
	case s.bin.vitess:
		return "Vitess " + number, nil
	}
	return map[Kind]string{MariaDB: "MariaDB ", MySQL: "MySQL "}[s.Kind()] + number, nil
}

// Addr returns the server's TCP address, 127.0.0.1 and a port. It does not change in Restart.
func (s *Server) Addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)) }

// DSN returns a data source name for user root, which has no password, and the given database, which may be
// empty.
func (s *Server) DSN(database string) string {
	return fmt.Sprintf("root@tcp(%s)/%s", s.Addr(), database)
}

// Target returns the server as a target on which tests create databases.
func (s *Server) Target() Target {
	return Target{Name: string(s.Kind()), dsn: s.DSN(""), vitess: s.bin.vitess}
}

// DataDir returns the server's data directory, which may be changed while the server is stopped. Programs in the parent
// folder come first on the server's PATH.
func (s *Server) DataDir() string { return s.filePath("data") }

// Log returns the server's error log.
func (s *Server) Log() string {
	log, _ := os.ReadFile(s.filePath("log"))
	return string(log)
}

// Kill9 kills the server as a power cut would. The data is kept for Restart.
func (s *Server) Kill9() error { return s.stopProcess(syscall.SIGKILL) }

// Shutdown ends the server normally. The data is kept for Restart.
func (s *Server) Shutdown() error { return s.stopProcess(syscall.SIGTERM) }

// Restart ends the server if it is running and starts it again with the same port and
// data.
func (s *Server) Restart() error {
	if err := s.Shutdown(); err != nil {
		return err
	}
	return s.Launch()
}

// Freeze stops the server's process, like a pause of its machine. Its connections stay open, and clients get
// no error.
func (s *Server) Freeze() error {
	if s.proc == nil {
		return errors.New("mysqltest: the server does not run")
	}
	return freeze.Freeze(s.proc.Pid)
}

// Thaw continues a frozen server.
func (s *Server) Thaw() error { return freeze.Thaw(s.proc.Pid) }

// Stop kills the server and removes its files. The data is not needed, so a normal shutdown would only take
// time.
func (s *Server) Stop() error {
	err := s.Kill9()
	if s.mysql != nil {
		err = errors.Join(err, s.mysql.Stop())
	}
	s.janitor.Stop()
	return errors.Join(err, os.RemoveAll(s.dir))
}

// Running reports whether the server was launched and has not been ended since.
func (s *Server) Running() bool { return s.proc != nil }

func (s *Server) stopProcess(sig syscall.Signal) error {
	if s.proc == nil {
		return nil
	}
	if err := s.proc.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("mysqltest: end the server: %w", err)
	}
	s.proc.Wait()
	s.proc = nil
	return s.janitor.Watch(0)
}

func (s *Server) filePath(name string) string { return filepath.Join(s.dir, name) }

// startOnFreePort tries several ports: the server cannot choose one itself, and another process may take a free port
// before the server listens on it.
func (s *Server) startOnFreePort() error {
	var err error
	for range 5 {
		if err = s.Launch(); err == nil || !strings.Contains(s.Log(), "already in use") {
			return err
		}
		if s.port, err = freeport.Find(); err != nil {
			return err
		}
	}
	return err
}

// Launch starts a stopped server, with further options for this start only, and waits until it answers.
func (s *Server) Launch(args ...string) error {
	log, err := os.OpenFile(s.filePath("log"), os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("mysqltest: %w", err)
	}
	defer log.Close()
	cmd, err := s.command(args)
	if err != nil {
		return err
	}
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C in a terminal is for the tests; the janitor ends the server
	if s.groupID != 0 {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(os.Geteuid()), Gid: uint32(s.groupID), NoSetGroups: true}
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("mysqltest: start %s: %w", s.bin.path, err)
	}
	s.proc = cmd.Process
	if err := s.janitor.Watch(s.proc.Pid); err != nil {
		return err
	}
	return s.awaitReady()
}

// RunToEnd runs the server's program on the data of a stopped server, with options that make it end by itself,
// and returns its output.
func (s *Server) RunToEnd(args ...string) (string, error) {
	cmd, err := s.command(args)
	if err != nil {
		return "", err
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("mysqltest: %s %s: %w\n%s", s.bin.path, strings.Join(args, " "), err, lastLines(string(out), 15))
	}
	return string(out), err
}

func (s *Server) command(args []string) (cmd *exec.Cmd, err error) {
	words := s.bin.serverArgs(s.DataDir(), s.filePath("sock"), s.port, slices.Concat(s.args, args))
	if s.mysql != nil {
		if words, err = vitessArgs(s, args); err != nil {
			return nil, fmt.Errorf("mysqltest: %w", err)
		}
	}
	cmd = s.bin.command(words...)
	cmd.Env = append(os.Environ(), "PATH="+s.dir+string(filepath.ListSeparator)+os.Getenv("PATH"))
	return cmd, nil
}

// awaitReady connects through the unix socket in the server's own folder, so it cannot mistake another server for this
// one.
func (s *Server) awaitReady() error {
	db, err := sql.Open("mysql", fmt.Sprintf("root@unix(%s)/", s.filePath("sock")))
	if err != nil {
		return fmt.Errorf("mysqltest: %w", err)
	}
	defer db.Close()
	deadline := time.Now().Add(startTimeout)
	for {
		if _, err = os.Stat(s.filePath("sock")); err == nil {
			ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
			err = db.PingContext(ctx)
			cancel()
			if err == nil {
				return nil
			}
		}
		// No goroutine waits for the process: tests that check for leaked goroutines would find it.
		var status syscall.WaitStatus
		if pid, _ := syscall.Wait4(s.proc.Pid, &status, syscall.WNOHANG, nil); pid == s.proc.Pid {
			s.proc = nil
			return errors.Join(fmt.Errorf("mysqltest: %s ended while starting:\n%s", s.bin.path, lastLines(s.Log(), 15)), s.janitor.Watch(0))
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("mysqltest: %s did not answer within %v: %w\n%s", s.bin.path, startTimeout, err, lastLines(s.Log(), 15))
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// tempDir creates the server's folder, with a path short enough for a unix socket (104 bytes on some
// systems).
func tempDir() (string, error) {
	parent := cmp.Or(os.Getenv(EnvData), os.TempDir())
	if len(parent) > 70 {
		parent = "/tmp"
	}
	return os.MkdirTemp(parent, "leafsql-mysqltest-")
}

// run runs a command to its end. Its error contains the output.
func run(cmd *exec.Cmd) error {
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("mysqltest: %s: %w\n%s", cmd.Path, err, lastLines(out.String(), 15))
	}
	return nil
}

func lastLines(s string, lines int) string {
	all := strings.Split(strings.TrimSpace(s), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
