//go:build unix

// Package zktest starts real, private ZooKeeper servers: a single one, and an ensemble of three.
//
//	s := zktest.Start(t, zktest.Config{})
//	conn, events, err := zk.Connect([]string{s.Addr}, 4*time.Second)
//	...
//	s.Kill9()
//	s.Start() // with its data; after s.Wipe() without
//
// A client that was connected before Wipe or Restore never comes back: a server refuses who has seen later changes than its
// own. Sessions time out after 1 to 10 s. Clients may authenticate by digest and protect nodes by ACLs, as with any server.
//
// Each server listens on free ports of 127.0.0.1 and goes with the test process, and its folder too. install.sh fetches the
// server with Maven; a missing one fails the test. The package cuts no network, which is netfault's.
package zktest

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/leafsql/leafsql/testutil/freeport"
	"github.com/leafsql/leafsql/testutil/process"
)

// Config says how servers differ from plain ones.
type Config struct {
	Lines []string // further lines of zoo.cfg: "jute.maxbuffer=4096"
}

// A Server is a ZooKeeper server. Its methods are for one goroutine at a time.
type Server struct {
	*process.Process
	Addr string // 127.0.0.1 and its port

	java string // the program
	jars string // the folder
	id   int    // which of an ensemble it is, from 1 on; 0: it is alone
}

// Start starts a single server for one test.
func Start(tb testing.TB, cfg Config) *Server {
	tb.Helper()
	port, err := freeport.Find()
	if err != nil {
		tb.Fatal(err)
	}
	s, err := newServer(port, 0, cfg.Lines)
	if err != nil {
		tb.Fatal(err)
	}
	s.Finish(tb)
	if err := s.Start(); err != nil {
		tb.Fatal(err)
	}
	return s
}

func newServer(port, id int, lines []string) (*Server, error) {
	java, err := exec.LookPath("java")
	if err != nil {
		return nil, fmt.Errorf("zktest: %w; run idgen/worker/zookeeper/zktest/install.sh, which installs a JDK", err)
	}
	jars, err := installed()
	if err != nil {
		return nil, err
	}
	s := &Server{Addr: address(port), java: java, jars: jars, id: id}
	if s.Process, err = process.New(process.Config{Name: "zookeeper", Command: s.command, Ready: s.serves}); err != nil {
		return nil, err
	}
	conf := slices.Concat([]string{
		"dataDir=" + filepath.Join(s.Dir(), "data"),
		"clientPortAddress=127.0.0.1", fmt.Sprintf("clientPort=%d", port),
		"tickTime=500",
		"forceSync=no", // nobody wants the data after a crash of the machine, and kill -9 does not need it
		"admin.enableServer=false", "4lw.commands.whitelist=srvr",
	}, lines)
	err = os.WriteFile(filepath.Join(s.Dir(), "zoo.cfg"), []byte(strings.Join(conf, "\n")+"\n"), 0o600)
	return s, errors.Join(err, s.identify())
}

func address(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

//go:embed pom.xml
var pom []byte

// installed finds the folder that install.sh has made for this pom.xml.
func installed() (string, error) {
	dir, err := process.Cache(fmt.Sprintf("zookeeper-%.6x", sha256.Sum256(pom)))
	if err == nil {
		_, err = os.Stat(dir)
	}
	if err != nil {
		return "", fmt.Errorf("zktest: no ZooKeeper found: %w; run idgen/worker/zookeeper/zktest/install.sh, which fetches it", err)
	}
	return dir, nil
}

func (s *Server) command(dir string) *exec.Cmd {
	return exec.Command(s.java, "-Xms16m", "-Xmx128m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-XX:-UsePerfData",
		"-Djava.net.preferIPv4Stack=true", "-Djava.io.tmpdir="+dir, "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
		"-cp", filepath.Join(s.jars, "*"), "org.apache.zookeeper.server.quorum.QuorumPeerMain", filepath.Join(dir, "zoo.cfg"))
}

// Wipe removes all that the server has stored. It must not run.
func (s *Server) Wipe() error {
	if err := s.Process.Wipe(); err != nil {
		return err
	}
	return s.identify()
}

// identify writes where a server finds out which of the ensemble it is.
func (s *Server) identify() error {
	if s.id == 0 {
		return nil
	}
	return os.WriteFile(filepath.Join(s.Dir(), "data", "myid"), []byte(strconv.Itoa(s.id)), 0o600)
}

func (s *Server) serves(ctx context.Context) error {
	_, err := s.mode(ctx)
	return err
}

// mode asks a server that serves what it is: "standalone", "leader" or "follower".
func (s *Server) mode(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Second) // one that is starting may never answer
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", s.Addr)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	if until, ok := ctx.Deadline(); ok {
		conn.SetDeadline(until)
	}
	if _, err := io.WriteString(conn, "srvr"); err != nil {
		return "", err
	}
	answer, err := io.ReadAll(conn)
	if err != nil {
		return "", err
	}
	_, mode, found := strings.Cut(string(answer), "Mode: ")
	if !found {
		return "", fmt.Errorf("zktest: %s says %q", s.Addr, answer)
	}
	mode, _, _ = strings.Cut(mode, "\n")
	return mode, nil
}
