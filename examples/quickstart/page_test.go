package main

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/leafsql/leafsql/testutil/mysqltest"
)

// demoEnv is set for the tests' program to run the demo.
const demoEnv = "LEAFSQL_QUICKSTART_DEMO"

var address = regexp.MustCompile(`The page of this process: (http://127\.0\.0\.1:\d+)`)

// A reader reads the page as soon as its address is written, while run waits.
type reader struct {
	url  string
	page string
	err  error
	bytes.Buffer
}

func (r *reader) Write(p []byte) (int, error) {
	if m := address.FindSubmatch(p); m != nil {
		r.url = string(m[1])
		r.page, r.err = get(r.url)
	}
	return r.Buffer.Write(p)
}

// TestPageWhileTheDemoRuns: without a terminal, the address is printed early, and the demo ends by itself.
func TestPageWhileTheDemoRuns(t *testing.T) {
	out := &reader{}
	if err := run(t.Context(), out, options{dsn: mysqltest.DSN(t), orders: 10, processes: 1, rounds: 1}); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if out.err != nil || out.url == "" {
		t.Fatalf("page %q: %v\n%s", out.url, out.err, out)
	}
	wantShop(t, out.page)
	checkUnreachable(t, out.url)
}

// TestCtrlCEndsTheDemo: as in a terminal, the shop and its page stay open after the last step. Ctrl-C ends the demo without an
// error.
func TestCtrlCEndsTheDemo(t *testing.T) {
	demo := exec.CommandContext(t.Context(), os.Args[0], "-stay", "-orders=10", "-processes=2")
	demo.Env = append(os.Environ(), demoEnv+"=1", "LEAFSQL_DSN="+mysqltest.DSN(t))
	demo.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C reaches all of a terminal's processes
	stdout, err := demo.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var stderr bytes.Buffer
	demo.Stderr = &stderr
	if err := demo.Start(); err != nil {
		t.Fatal(err)
	}
	defer syscall.Kill(-demo.Process.Pid, syscall.SIGKILL)

	var url string
	lines := bufio.NewScanner(stdout)
	for lines.Scan() {
		if m := address.FindStringSubmatch(lines.Text()); m != nil {
			url = m[1]
		}
		if strings.HasSuffix(lines.Text(), "press Ctrl-C to end") {
			break
		}
	}
	before := ""
	for range 3 { // the shop continues: more and more keys are filled
		for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
			page, err := get(url)
			if err != nil || time.Now().After(deadline) {
				t.Fatalf("page %q has %q ids: %v\n%s", url, before, err, &stderr)
			}
			wantShop(t, page)
			if ids := issued.FindString(page); ids != before {
				before = ids
				break
			}
		}
	}

	if err := syscall.Kill(-demo.Process.Pid, syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	io.Copy(io.Discard, stdout)
	if err := demo.Wait(); err != nil || stderr.Len() > 0 {
		t.Errorf("Ctrl-C at the page: %v\n%s", err, &stderr)
	}
	if err := syscall.Kill(-demo.Process.Pid, 0); err != syscall.ESRCH {
		t.Errorf("a process of the demo is left: %v", err)
	}
	checkUnreachable(t, url)
	checkCleanedUp(t, mysqltest.DSN(t))
}

var issued = regexp.MustCompile(`<b>[1-9][\d,]*</b> ids issued`)

// wantShop fails the test if the page lacks the shop's tags or tables.
func wantShop(t *testing.T, page string) {
	t.Helper()
	_, page, _ = strings.Cut(page, "<main>")
	for _, table := range tables {
		for _, row := range []string{table, `\w+_leaf_a\.` + table} { // row of the tag, row of the table
			if !regexp.MustCompile(`scope="row"><span>` + row + `</span></th>`).MatchString(page) {
				t.Fatalf("the page lacks %s:\n%s", row, page)
			}
		}
	}
	if !issued.MatchString(page) {
		t.Fatalf("no ids on the page:\n%s", page)
	}
}

func checkUnreachable(t *testing.T, url string) {
	t.Helper()
	if _, err := get(url); err == nil {
		t.Errorf("%s still answers", url)
	}
}

func get(url string) (string, error) {
	resp, err := http.Get(url)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return string(body), err
}
