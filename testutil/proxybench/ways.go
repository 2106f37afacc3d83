//go:build linux

package main

import (
	"context"
	"database/sql"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/go-sql-driver/mysql"

	"github.com/leafsql/leafsql/testutil/freeport"
	"github.com/leafsql/leafsql/testutil/haproxytest"
	"github.com/leafsql/leafsql/testutil/mysqltest"
	"github.com/leafsql/leafsql/testutil/process"
	"github.com/leafsql/leafsql/testutil/selfsigned"
)

// The ways to the server, in the order of the columns.
const (
	direct = iota
	throughProxy
	throughHAProxy
	ways
)

var wayNames = [ways]string{"direct", "proxy", "HAProxy"}

// A setup is a server and the ways to it.
type setup struct {
	server  *mysqltest.Server
	pids    [ways]int // the proxy and HAProxy; for the direct way the server
	addrs   [ways]string
	control string // address at which the proxy reports its memory
	between []*process.Process
	tls     *selfsigned.Certificate
	certDir string
	cert    string // files in certDir
	key     string
}

// start starts the server, the proxy and HAProxy for that many idle connections, and fills the tables for reads.
func start(idle int, args ...string) (*setup, error) {
	s := new(setup)
	if err := s.start(idle, args); err != nil {
		s.stop()
		return nil, err
	}
	return s, nil
}

func (s *setup) start(idle int, args []string) (err error) {
	if s.tls, err = selfsigned.New(); err != nil {
		return err
	}
	if s.certDir, err = os.MkdirTemp("", "leafsql-proxybench-"); err != nil {
		return err
	}
	if s.cert, s.key, err = s.tls.Write(s.certDir); err != nil {
		return err
	}
	args = append(args, "--max-connections="+strconv.Itoa(idle+100), "--open-files-limit="+strconv.Itoa(idle+2000), "--ssl-cert="+s.cert, "--ssl-key="+s.key)
	if s.server, err = mysqltest.Start(mysqltest.Config{Kind: mysqltest.MariaDB, Args: args}); err != nil {
		return err
	}
	s.addrs[direct] = s.server.Addr()
	if err := s.fill(); err != nil {
		return err
	}
	if err := s.startProxy(); err != nil {
		return err
	}
	return s.startHAProxy(idle)
}

func (s *setup) stop() {
	for _, p := range s.between {
		p.Stop()
	}
	if s.server != nil {
		s.server.Stop()
	}
	os.RemoveAll(s.certDir)
}

func (s *setup) describe() string {
	version, _ := s.server.Version()
	haproxy, _ := exec.Command(haproxytest.Path(), "-v").Output()
	words := strings.Fields(string(haproxy))
	if len(words) > 2 {
		words = words[:3]
	}
	load, _ := os.ReadFile("/proc/loadavg")
	return fmt.Sprintf("%s, %s, load %s", version, strings.Join(words, " "), strings.Join(strings.Fields(string(load))[:3], " "))
}

// fill creates the rows for reads, and a table for writes. The table has AUTO_INCREMENT for the ways on which
// no proxy fills it.
func (s *setup) fill() error {
	db, err := sql.Open("mysql", s.server.DSN("")+"?maxAllowedPacket=0")
	if err != nil {
		return err
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	for _, statement := range []string{
		"CREATE DATABASE plain", "CREATE DATABASE leaf",
		"CREATE TABLE plain.written (id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY, a VARCHAR(50))",
		"CREATE TABLE leaf.written (id BIGINT NOT NULL PRIMARY KEY, a VARCHAR(50))",
		"USE plain",
		"CREATE TABLE points (id BIGINT NOT NULL PRIMARY KEY, v VARCHAR(40))",
		"INSERT INTO points SELECT seq, CONCAT('value ', seq) FROM seq_1_to_10000",
		"CREATE TABLE many (id BIGINT NOT NULL PRIMARY KEY, v CHAR(64))",
		"INSERT INTO many SELECT seq, REPEAT(CHAR(97 + seq MOD 26), 64) FROM seq_1_to_100000",
		"CREATE TABLE big (id INT NOT NULL PRIMARY KEY, v LONGBLOB)",
		"INSERT INTO big VALUES (1, REPEAT('0123456789abcdef', 2 << 20))",
		"CREATE TABLE leaf.points LIKE points", "INSERT INTO leaf.points SELECT * FROM points",
		"CREATE TABLE leaf.many LIKE many", "INSERT INTO leaf.many SELECT * FROM many",
		"CREATE TABLE leaf.big LIKE big", "INSERT INTO leaf.big SELECT * FROM big",
	} {
		if _, err := db.Exec(statement); err != nil {
			return fmt.Errorf("%s: %w", statement, err)
		}
	}
	var pidFile string
	if err := db.QueryRow("SELECT @@pid_file").Scan(&pidFile); err != nil {
		return err
	}
	pid, err := os.ReadFile(pidFile)
	if err != nil {
		return err
	}
	s.pids[direct], err = strconv.Atoi(strings.TrimSpace(string(pid)))
	return err
}

// dsn returns the DSN of the way's database.
func (s *setup) dsn(way int, parameters string) string {
	database := "plain"
	if way == throughProxy {
		database = "leaf"
	}
	return fmt.Sprintf("root@tcp(%s)/%s?maxAllowedPacket=0%s", s.addrs[way], database, parameters)
}

func (s *setup) startProxy() error {
	port, err := freeport.Find()
	if err != nil {
		return err
	}
	control, err := freeport.Find()
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	s.addrs[throughProxy], s.control = localAddr(port), localAddr(control)
	return s.launch(throughProxy, "proxy", func(string) *exec.Cmd {
		cmd := exec.Command(self)
		cmd.Env = append(os.Environ(), proxyEnv+"="+strings.Join([]string{s.addrs[throughProxy], s.control, s.server.DSN("leaf"), s.cert, s.key}, " "))
		return cmd
	})
}

func (s *setup) startHAProxy(idle int) error {
	port, err := freeport.Find()
	if err != nil {
		return err
	}
	s.addrs[throughHAProxy] = localAddr(port)
	return s.launch(throughHAProxy, "haproxy", func(dir string) *exec.Cmd {
		config := filepath.Join(dir, "haproxy.cfg")
		os.WriteFile(config, fmt.Appendf(nil, `global
	maxconn %d
	ulimit-n %d
defaults
	mode tcp
	timeout connect 5s
	timeout client 1h
	timeout server 1h
listen mysql
	bind %s
	server one %s
`, idle+50, 2*idle+150, s.addrs[throughHAProxy], s.server.Addr()), 0o600)
		return exec.Command(haproxytest.Path(), "-db", "-f", config)
	})
}

func (s *setup) launch(way int, name string, command func(dir string) *exec.Cmd) error {
	var cmd *exec.Cmd
	p, err := process.New(process.Config{
		Name:    name,
		Command: func(dir string) *exec.Cmd { cmd = command(dir); return cmd },
		Ready: func(ctx context.Context) error {
			cfg, err := mysql.ParseDSN(s.dsn(way, ""))
			if err != nil {
				return err
			}
			cfg.Logger = &mysql.NopLogger{}
			connector, err := mysql.NewConnector(cfg)
			if err != nil {
				return err
			}
			db := sql.OpenDB(connector)
			defer db.Close()
			return db.PingContext(ctx)
		},
	})
	if err != nil {
		return err
	}
	s.between = append(s.between, p)
	if err := p.Start(); err != nil {
		return err
	}
	s.pids[way] = cmd.Process.Pid
	return nil
}

// raiseOpenFiles raises the limit of open files of this process and its children to the kernel's maximum. It
// returns the number of connections that this allows in a process with two files for each connection.
func raiseOpenFiles() (connections int, err error) {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 0, err
	}
	limit.Cur = limit.Max
	return int(limit.Max-200) / 2, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit)
}

func localAddr(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }
