//go:build unix

// Package zktest starts real, private ZooKeeper servers: a single one, and an ensemble of three.
//
//	s := zktest.Start(t, zktest.Config{})
//	conn, events, err := zk.Connect([]string{s.Addr}, 4*time.Second)
//	...
//	s.Kill9()
//	s.Start() // with its data; after s.Wipe() without
//
// A client that was connected before Wipe or Restore cannot reconnect: a server refuses clients that have seen changes that the
// server does not have. Sessions time out after 1 to 10 s. Clients may authenticate by digest and protect nodes by ACLs.
//
// Each server listens on free ports of 127.0.0.1. It ends with the test process, and its folder is removed. install.sh fetches the
// server with Maven; a missing server fails the test. To cut the network between clients and servers, use package netfault.
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

// Config configures servers. Its zero value is valid.
type Config struct {
	Lines []string // further lines of zoo.cfg: "jute.maxbuffer=4096"
}

// A Server is a ZooKeeper server. Its methods are for one goroutine at a time.
type Server struct {
	*process.Process
	Addr string // 127.0.0.1 and its port

	java string // path of the java program
	jars string // folder of the jar files
	id   int    // number in the ensemble, from 1 on; 0: a single server
}

// Start starts a single server for one test.
func Start(tb testing.TB, cfg Config) *Server {
	tb.Helper()
	s, err := Launch(cfg)
	if err != nil {
		tb.Fatal(err)
	}
	s.Finish(tb)
	return s
}

// Launch starts a single server that several tests use. It ends with the test process.
func Launch(cfg Config) (*Server, error) {
	port, err := freeport.Find()
	if err != nil {
		return nil, err
	}
	s, err := newServer(port, 0, cfg.Lines)
	if err != nil {
		return nil, err
	}
	if err := s.Start(); err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	return s, nil
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
		"forceSync=no", // kill -9 does not need it, and after a crash of the machine the data is not needed
		"admin.enableServer=false", "4lw.commands.whitelist=srvr",
	}, lines)
	err = os.WriteFile(filepath.Join(s.Dir(), "zoo.cfg"), []byte(strings.Join(conf, "\n")+"\n"), 0o600)
	return s, errors.Join(err, s.identify())
}

func address(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

//go:embed pom.xml
var pom []byte

// installed returns the folder that install.sh has created for this pom.xml.
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

// Wipe removes all data of the server, which must not run.
func (s *Server) Wipe() error {
	if err := s.Process.Wipe(); err != nil {
		return err
	}
	return s.identify()
}

// identify writes the file with the server's number in the ensemble.
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

// mode returns the mode of a server that serves: "standalone", "leader" or "follower".
func (s *Server) mode(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Second) // a starting server may never answer
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
