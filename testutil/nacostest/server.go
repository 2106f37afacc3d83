// Package nacostest starts real, private Nacos servers of several versions:
//
//	s := nacostest.Start(t, nacostest.V3, nacostest.Options{})
//	open, err := worker.Lookup("nacos("+s.Addr()+")", nil)
//	s.Kill9()
//	s.Restart(t)
//
// The servers come from Maven packages, which are fetched once into the user's
// cache folder. A JDK and Maven are required (install.sh installs them); on a
// machine without them tests fail and are never skipped.
//
// Each server is standalone, has a separate home and listens on free loopback ports. It ends
// with the test process, and its home is removed. Servers start one after another, even in
// several test processes, because a start uses two cores for 10 s. The package sends no requests
// to the servers except to find out whether they are ready.
package nacostest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/leafsql/leafsql/testutil/freeport"
	"github.com/leafsql/leafsql/testutil/freeze"
	"github.com/leafsql/leafsql/testutil/janitor"
)

// Version is a server's version.
type Version string

// The versions that can be started, and their properties.
const (
	V1       Version = "1.4.1" // integer instance ids, no compare-and-set
	V2Unsafe Version = "2.0.4" // compare-and-set is acknowledged and changes nothing
	V2       Version = "2.3.2" // compare-and-set works, creation is not exclusive
	V3       Version = "3.1.0" // compare-and-set works, one creator wins
)

// User and Password are the credentials of the administrator of a server with
// Options.Auth.
const (
	User     = "nacos"
	Password = "nacos"
)

// Options are the differences from a default server.
type Options struct {
	Auth       bool     // requires User and Password
	Properties []string // further lines of application.properties
}

// Server is a Nacos server in a separate process.
type Server struct {
	Version Version

	port int
	home string // its folder: conf, data, logs, console.log
	jars string
	opts Options
	peer *membership // nil: standalone
	proc *process    // nil when stopped

	janitor *janitor.Janitor // removes home
}

// bootTimeout is the timeout of a start; alone on two cores it takes 8 to 13 s.
const bootTimeout = 3 * time.Minute

// Start starts a server and stops it when the test ends. If the test has failed
// by then, it logs the end of the server's output.
func Start(tb testing.TB, v Version, opts Options) *Server {
	tb.Helper()
	s, err := Launch(tb.Context(), v, opts)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { s.finish(tb) })
	return s
}

// finish stops a test's server.
func (s *Server) finish(tb testing.TB) {
	if tb.Failed() {
		tb.Logf("nacos %s, last output:\n%s", s.Version, s.output())
	}
	if err := s.Stop(); err != nil {
		tb.Error(err)
	}
}

// Launch starts a server outside of a test. The caller stops it. If ctx ends
// before the server is ready, Launch removes everything; afterwards ctx has no
// effect.
func Launch(ctx context.Context, v Version, opts Options) (*Server, error) {
	s, err := prepareServer(ctx, v, opts)
	if err != nil {
		return nil, err
	}
	if err := s.boot(ctx); err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	return s, nil
}

// prepareServer returns a server that has its jars and its home.
func prepareServer(ctx context.Context, v Version, opts Options) (*Server, error) {
	jars, err := install(ctx, v)
	if err != nil {
		return nil, err
	}
	return newServer(v, opts, jars)
}

func newServer(v Version, opts Options, jars string) (*Server, error) {
	home, err := os.MkdirTemp("", "nacostest-"+string(v)+"-")
	if err != nil {
		return nil, err
	}
	s := &Server{Version: v, home: home, jars: jars, opts: opts}
	if s.janitor, err = janitor.Start(home); err != nil {
		return nil, errors.Join(err, os.RemoveAll(home))
	}
	return s, nil
}

// Addr returns host:port of the HTTP API, the address for clients.
func (s *Server) Addr() string { return loopback(s.port) }

// GRPCAddr returns host:port of the gRPC API, which 1.4.1 does not have.
func (s *Server) GRPCAddr() string { return grpcAddr(s.port) }

// Kill9 ends the server as a crash would. It does nothing if the server is stopped.
func (s *Server) Kill9() {
	if s.proc != nil {
		s.proc.kill9()
		s.proc = nil
		_ = s.janitor.Watch(0) // fails only if the janitor has ended, and then no process uses the pid
	}
}

// Stop ends the server and removes all its files.
func (s *Server) Stop() error {
	s.Kill9()
	s.janitor.Stop()
	return os.RemoveAll(s.home)
}

// Restart starts a stopped server again, on the same ports and data.
func (s *Server) Restart(tb testing.TB) {
	tb.Helper()
	if err := s.Relaunch(tb.Context()); err != nil {
		tb.Fatal(err)
	}
}

// Relaunch is like Restart, for use outside of a test. It does not wait for the
// start of other servers, since leases end while a server is down.
func (s *Server) Relaunch(ctx context.Context) error {
	if s.proc != nil {
		return errors.New("nacostest: the server is running")
	}
	return s.bootNow(ctx)
}

// Wipe removes all data of a stopped server.
func (s *Server) Wipe(tb testing.TB) {
	tb.Helper()
	s.mustBeStopped(tb)
	if err := os.RemoveAll(s.data()); err != nil {
		tb.Fatal(err)
	}
}

// Freeze stops the server's process with its connections open, until Thaw.
func (s *Server) Freeze(tb testing.TB) {
	tb.Helper()
	if err := freeze.Freeze(s.proc.cmd.Process.Pid); err != nil {
		tb.Fatal(err)
	}
}

// Thaw continues a frozen server.
func (s *Server) Thaw(tb testing.TB) {
	tb.Helper()
	if err := freeze.Thaw(s.proc.cmd.Process.Pid); err != nil {
		tb.Fatal(err)
	}
}

// Snapshot copies the server's data for Restore. A running server is frozen
// meanwhile, so the copy is what a crash would have left.
func (s *Server) Snapshot(tb testing.TB) (dir string) {
	tb.Helper()
	if s.proc != nil {
		s.Freeze(tb)
		defer s.Thaw(tb)
	}
	dir = tb.TempDir()
	if err := os.CopyFS(dir, os.DirFS(s.data())); err != nil {
		tb.Fatal(err)
	}
	return dir
}

// Restore replaces the data of a stopped server with a snapshot.
func (s *Server) Restore(tb testing.TB, dir string) {
	tb.Helper()
	s.Wipe(tb)
	if err := os.CopyFS(s.data(), os.DirFS(dir)); err != nil {
		tb.Fatal(err)
	}
}

func (s *Server) data() string { return filepath.Join(s.home, "data") }

func (s *Server) mustBeStopped(tb testing.TB) {
	tb.Helper()
	if s.proc != nil {
		tb.Fatal("nacostest: the server is running; Kill9 it first")
	}
}

// boot finds a port, starts the process and waits until the server is ready.
// One server starts at a time. The first of its version also writes the archive.
func (s *Server) boot(ctx context.Context) error {
	unlock, err := lockFile(ctx, "boot.lock")
	if err != nil {
		return err
	}
	defer unlock()
	if s.port == 0 {
		if s.port, err = freeport.Find(portOffsets...); err != nil {
			return err
		}
	}
	recorded := !s.hasArchive()
	if err := s.bootNow(ctx); err != nil || !recorded {
		return err
	}
	return s.writeArchive(ctx)
}

func (s *Server) bootNow(ctx context.Context) error {
	if err := s.start(); err != nil {
		return err
	}
	return s.awaitReady(ctx)
}

func (s *Server) start() error {
	if err := s.configure(); err != nil {
		return err
	}
	var err error
	if s.proc, err = start(s.command(), s.console()); err != nil {
		return err
	}
	return s.janitor.Watch(s.proc.cmd.Process.Pid)
}

func (s *Server) configure() error {
	conf := filepath.Join(s.home, "conf")
	for _, dir := range []string{conf, filepath.Join(s.home, "tmp")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	props, err := servers.ReadFile(path.Join("servers", string(s.Version), "application.properties"))
	if err != nil {
		return err
	}
	lines := []string{
		"server.address=127.0.0.1",
		fmt.Sprintf("server.port=%d", s.port),
		fmt.Sprintf("nacos.server.main.port=%d", s.port),
	}
	if s.opts.Auth {
		lines = append(lines, "nacos.core.auth.enabled=true",
			"nacos.core.auth.admin.enabled=true", "nacos.core.auth.console.enabled=true")
	}
	if s.peer != nil {
		lines = append(lines, s.peer.properties()...)
		if err := os.WriteFile(filepath.Join(conf, "cluster.conf"), s.peer.members(), 0o644); err != nil {
			return err
		}
	}
	props = append(props, strings.Join(slices.Concat(lines, s.opts.Properties), "\n")+"\n"...)
	return os.WriteFile(filepath.Join(conf, "application.properties"), props, 0o644)
}

// command returns the server's command line. Jars that have to come first on
// the class path precede the wildcard.
func (s *Server) command() *exec.Cmd {
	lib := filepath.Join(s.jars, "lib")
	first, main := "", "com.alibaba.nacos.Nacos"
	args := []string{
		"-Xms256m", "-Xmx512m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-XX:-UsePerfData",
		"-Dnacos.standalone=" + strconv.FormatBool(s.peer == nil), "-Dnacos.home=" + s.home, "-Duser.home=" + s.home,
		"-Dderby.stream.error.file=" + filepath.Join(s.home, "derby.log"), "-Djava.io.tmpdir=" + filepath.Join(s.home, "tmp"),
	}
	if !s.hasArchive() {
		args = append(args, "-XX:+RecordDynamicDumpInfo")
	} else {
		args = append(args, "-XX:SharedArchiveFile="+s.archive())
	}
	switch s.Version {
	case V3:
		first, main = filepath.Join(s.jars, "boot.jar")+":", "Boot"
		args = append(args, "-Dnacos.deployment.type=server", fmt.Sprintf("-Dnacos.server.main.port=%d", s.port))
	case V2, V2Unsafe:
		first = lib + "/hessian-4.0.63.jar:" + lib + "/nacos-console-" + string(s.Version) + ".jar:"
		args = append(args, "--add-opens", "java.base/java.lang=ALL-UNNAMED")
	}
	args = append(args, "-cp", first+lib+"/*", main,
		"--spring.config.additional-location=file:"+filepath.Join(s.home, "conf")+"/",
		"--server.tomcat.basedir="+s.home)
	cmd := exec.Command("java", args...)
	cmd.Dir = s.home
	return cmd
}

// awaitReady waits until the server is ready. If the server does not become ready,
// it kills the server and returns an error with the reason.
func (s *Server) awaitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, bootTimeout, fmt.Errorf("not ready after %v", bootTimeout))
	defer cancel()
	err := s.answersRequests(ctx)
	if err != nil {
		s.Kill9()
		err = fmt.Errorf("nacostest: nacos %s: %w\n%s", s.Version, err, s.output())
	}
	return err
}

func (s *Server) answersRequests(ctx context.Context) error {
	if err := s.poll(ctx, s.serves); err != nil || !s.opts.Auth {
		return err
	}
	if s.Version == V3 {
		if err := s.setPassword(ctx); err != nil {
			return err
		}
	}
	return s.poll(ctx, s.login) // the server loads its users some seconds after it is ready
}

func (s *Server) poll(ctx context.Context, ok func(context.Context) bool) error {
	for !ok(ctx) {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-s.proc.done:
			return errors.New("it ended while booting")
		case <-time.After(100 * time.Millisecond):
		}
	}
	return nil
}

func (s *Server) serves(ctx context.Context) bool {
	ready := "/nacos/v1/console/health/readiness"
	if s.Version == V3 {
		ready = "/nacos/v3/admin/core/state/readiness"
	}
	if s.Version != V1 {
		c, err := net.Dial("tcp", s.GRPCAddr())
		if err != nil {
			return false
		}
		c.Close()
	}
	code, err := s.do(ctx, http.MethodGet, ready, nil)
	return err == nil && code == http.StatusOK
}

// setPassword sets the administrator's password in 3.x; earlier versions have a
// default password. A restarted server already has a password and answers 409.
func (s *Server) setPassword(ctx context.Context) error {
	code, err := s.do(ctx, http.MethodPost, "/nacos/v3/auth/user/admin", url.Values{"password": {Password}})
	if err == nil && code != http.StatusOK && code != http.StatusConflict {
		err = fmt.Errorf("setting the administrator's password: HTTP %d", code)
	}
	return err
}

func (s *Server) login(ctx context.Context) bool {
	form := url.Values{"username": {User}, "password": {Password}}
	code, err := s.do(ctx, http.MethodPost, "/nacos/v1/auth/users/login", form)
	return err == nil && code == http.StatusOK
}

func (s *Server) do(ctx context.Context, method, path string, form url.Values) (int, error) {
	req, err := http.NewRequestWithContext(ctx, method, "http://"+s.Addr()+path+"?"+form.Encode(), nil)
	if err != nil {
		return 0, err
	}
	resp, err := client.Do(req)
	if err != nil {
		return 0, err
	}
	return resp.StatusCode, resp.Body.Close()
}

// client keeps no connection, so none is left after a test.
var client = &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}

func (s *Server) console() string { return filepath.Join(s.home, "console.log") }

// output returns the end of the server's output.
func (s *Server) output() string {
	b, err := os.ReadFile(s.console())
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	lines = lines[max(0, len(lines)-10):]
	for i, line := range lines {
		lines[i] = line[:min(len(line), 300)]
	}
	return strings.Join(lines, "\n")
}
