package docs

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/leafsql/leafsql/testutil/mysqltest"
)

var (
	toolsDir   string
	buildTools = sync.OnceValue(func() error {
		var err error
		if toolsDir, err = os.MkdirTemp("", "leafsql-docs-"); err != nil {
			return err
		}
		for name, in := range map[string]string{"leafsql": "../cmd/leafsql", "move": "../examples/move"} {
			cmd := exec.Command("go", "build", "-buildvcs=false", "-o", filepath.Join(toolsDir, name), ".")
			cmd.Dir = in
			if out, err := cmd.CombinedOutput(); err != nil {
				return fmt.Errorf("%s: %w\n%s", name, err, out)
			}
		}
		return nil
	})
)

// buildToolsFolder returns a folder with the programs that pages run, leafsql and move.
func buildToolsFolder(t *testing.T) string {
	t.Helper()
	if err := buildTools(); err != nil {
		t.Fatal(err)
	}
	return toolsDir
}

func TestMain(m *testing.M) {
	code := m.Run()
	if toolsDir != "" {
		os.RemoveAll(toolsDir)
	}
	os.Exit(code)
}

// A shell runs a page's blocks of sh line by line. Exported variables of a block are set in the
// following ones.
type shell struct {
	hosts   map[string]*mysqltest.Server // by their names on the page
	exports string
}

// run runs a block and returns its output. A line with another exit code than 0 has a comment with the
// code.
func (s *shell) run(t *testing.T, code string) (output string) {
	t.Helper()
	for line := range strings.Lines(code) {
		if strings.HasPrefix(line, "export ") {
			s.exports += line
			continue
		}
		want := "0"
		if _, said, ok := strings.Cut(line, "# exit code "); ok {
			want = strings.TrimSpace(said)
		}
		cmd := exec.Command("sh", "-c", replaceAddresses(s.hosts, s.exports+line))
		cmd.Env = append(os.Environ(), "PATH="+buildToolsFolder(t)+":"+os.Getenv("PATH"))
		out, err := cmd.CombinedOutput()
		if cmd.ProcessState == nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(cmd.ProcessState.ExitCode()); got != want {
			t.Fatalf("%sends with %s, want %s\n%s", line, got, want, out)
		}
		output += string(out)
	}
	return output
}

// replaceAddresses replaces the addresses on the page with those of the servers.
func replaceAddresses(hosts map[string]*mysqltest.Server, text string) string {
	var pairs []string
	for name, server := range hosts {
		pairs = append(pairs, name+":3306", server.Addr(), name+":4000", server.Addr())
	}
	return strings.NewReplacer(pairs...).Replace(text)
}

// writeClients creates programs mysql and mysqldump that connect as root to the servers of these
// names.
func writeClients(t *testing.T, dir string, hosts map[string]*mysqltest.Server) {
	t.Helper()
	for _, name := range []string{"mysql", "mysqldump"} {
		path, err := exec.LookPath(name)
		if err != nil {
			t.Fatalf("%v; run .ci/install commandline", err)
		}
		cases := ""
		for host, server := range hosts {
			address, port, _ := strings.Cut(server.Addr(), ":")
			cases += fmt.Sprintf("  %s) set -- \"$@\" %s; port=--port=%s;;\n", host, address, port)
		}
		program := fmt.Sprintf("#!/bin/sh\nfor arg; do\n  shift\n  case $arg in\n%s  *) set -- \"$@\" \"$arg\";;\n  esac\ndone\nexec %s --no-defaults -u root \"$@\" $port\n", cases, path)
		if err := os.WriteFile(filepath.Join(dir, name), []byte(program), 0o700); err != nil {
			t.Fatal(err)
		}
	}
}
