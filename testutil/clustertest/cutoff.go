//go:build unix

package clustertest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// SeparableGroup starts nodes like [GroupReplication], and [Cluster.CutOff] can cut these nodes off from each other. This needs root
// and iptables; without them the test fails.
//
// All nodes have the same address, and their connections start from random ports. So each node runs with a different group ID of the
// operating system, the number of one of its ports, and rules of iptables drop packets by the sender's group ID and the receiver's port. The
// rules are in a separate chain. It is removed when the test ends, or by the next SeparableGroup if the test is killed.
func SeparableGroup(t testing.TB, args ...string) *Cluster {
	t.Helper()
	chain := fmt.Sprintf("%s%d", chainPrefix, os.Getpid())
	err := removeOldChains()
	if err == nil {
		err = iptables("-N " + chain)
	}
	if err == nil {
		t.Cleanup(func() {
			if err := removeChain(chain); err != nil {
				t.Error(err)
			}
		})
		err = iptables("-I OUTPUT -o lo -p tcp -j " + chain)
	}
	if err == nil && os.Geteuid() != 0 {
		err = errors.New("the user is not root")
	}
	if err != nil {
		t.Fatalf("clustertest: nodes of a group cannot be cut off from each other: %v; run the test as root, and install iptables (Debian: .ci/install iptables)", err)
	}
	c := startGroup(t, true, args)
	c.chain = chain
	c.CutOff(t, 0) // fails if iptables lacks a module
	c.Reconnect(t)
	return c
}

// CutOff cuts each of the nodes off from all other nodes of a [SeparableGroup], until Reconnect. The nodes stay alive, and programs can
// connect to all of them. What nodes send on connections that they opened is lost. They send all messages on these
// connections: on connections that others opened, they only answer.
func (c *Cluster) CutOff(t testing.TB, nodes ...int) {
	t.Helper()
	for _, i := range nodes {
		for j := range c.Nodes {
			if i != j {
				c.drop(t, i, j)
				c.drop(t, j, i)
			}
		}
	}
}

// drop loses packets from one node to the ports of another one.
func (c *Cluster) drop(t testing.TB, from, to int) {
	t.Helper()
	_, port, _ := strings.Cut(c.Nodes[to].Addr(), ":")
	err := iptables(fmt.Sprintf("-A %s -p tcp -m owner --gid-owner %d -m multiport --dports %d,%s -j DROP", c.chain, c.ports[from], c.ports[to], port))
	if err != nil {
		t.Fatalf("clustertest: cut node %d off from node %d: %v", from, to, err)
	}
}

// Reconnect connects all nodes again.
func (c *Cluster) Reconnect(t testing.TB) {
	t.Helper()
	if err := iptables("-F " + c.chain); err != nil {
		t.Fatalf("clustertest: connect the nodes again: %v", err)
	}
}

const chainPrefix = "leafsql-group-" // and the process ID of the test

// removeOldChains removes the rules of tests that were killed.
func removeOldChains() error {
	rules, err := exec.Command("iptables", "-w", "-S").Output()
	if err != nil {
		return withStderr(err)
	}
	for line := range strings.Lines(string(rules)) {
		var pid int
		if n, _ := fmt.Sscanf(line, "-N "+chainPrefix+"%d", &pid); n == 1 && (pid == os.Getpid() || errors.Is(syscall.Kill(pid, 0), syscall.ESRCH)) {
			if err := removeChain(fmt.Sprintf("%s%d", chainPrefix, pid)); err != nil {
				return err
			}
		}
	}
	return nil
}

func removeChain(chain string) error {
	iptables("-D OUTPUT -o lo -p tcp -j " + chain) // fails if the test was killed before it added this rule
	return errors.Join(iptables("-F "+chain), iptables("-X "+chain))
}

func iptables(args string) error {
	_, err := exec.Command("iptables", strings.Fields("-w "+args)...).Output()
	if err != nil {
		return fmt.Errorf("iptables %s: %w", args, withStderr(err))
	}
	return nil
}

// withStderr adds what a command printed to its error.
func withStderr(err error) error {
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return fmt.Errorf("%w: %s", err, strings.TrimSpace(string(exit.Stderr)))
	}
	return err
}
