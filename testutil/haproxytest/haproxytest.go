//go:build unix

// Package haproxytest runs HAProxy, a balancer, in tests.
//
//	h := haproxytest.Run(t, `listen mysql
//		bind 127.0.0.1:4006
//		server one 127.0.0.1:3307 send-proxy-v2`)
//
// It never skips: without HAProxy the test fails with a hint on what to install.
package haproxytest

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/leafsql/leafsql/testutil/process"
)

// Path returns the path of HAProxy, or the usual one if it is not installed.
func Path() string {
	if path, err := exec.LookPath("haproxy"); err == nil {
		return path
	}
	return "/usr/sbin/haproxy"
}

// HAProxy is a running HAProxy.
type HAProxy struct {
	process *process.Process
	socket  string
}

// Run runs an HAProxy in TCP mode, with these sections, until the test ends.
func Run(t testing.TB, sections string) *HAProxy {
	t.Helper()
	if _, err := os.Stat(Path()); err != nil {
		t.Fatalf("haproxytest: %v; run .ci/install haproxy", err)
	}
	h := new(HAProxy)
	p, err := process.New(process.Config{
		Name: "haproxy",
		Command: func(dir string) *exec.Cmd {
			config := filepath.Join(dir, "haproxy.cfg")
			h.socket = filepath.Join(dir, "ask")
			os.WriteFile(config, fmt.Appendf(nil, `global
	stats socket %s level admin
defaults
	mode tcp
	timeout connect 5s
	timeout client 1m
	timeout server 1m
%s
`, h.socket, sections), 0o600)
			return exec.Command(Path(), "-db", "-f", config)
		},
		Ready: func(context.Context) error {
			_, err := h.ask("show info")
			return err
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Stop(); err != nil {
			t.Error(err)
		}
	})
	h.process = p
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	return h
}

// Ask sends a command of HAProxy's command language, such as "show stat", and
// returns the answer.
func (h *HAProxy) Ask(t testing.TB, command string) string {
	t.Helper()
	answer, err := h.ask(command)
	if err != nil {
		t.Fatalf("haproxytest: %s: %v", command, err)
	}
	return answer
}

func (h *HAProxy) ask(command string) (string, error) {
	c, err := net.Dial("unix", h.socket)
	if err != nil {
		return "", err
	}
	defer c.Close()
	io.WriteString(c, command+"\n")
	answer, err := io.ReadAll(c)
	return string(answer), err
}
