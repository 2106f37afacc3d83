package main

import (
	"bytes"
	"context"
	"database/sql"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/leafsql/leafsql/testutil/mysqltest"
)

func TestMain(m *testing.M) {
	if os.Getenv(workerEnv) != "" {
		work(os.Stdin, os.Stdout)
		return
	}
	if os.Getenv(demoEnv) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

func TestDemo(t *testing.T) {
	t.Setenv("LC_ALL", "C.UTF-8")
	for _, target := range mysqltest.Targets(t) {
		t.Run(target.Name, func(t *testing.T) {
			var out bytes.Buffer
			if err := run(t.Context(), &out, options{dsn: target.DSN(), orders: 2003, processes: 3, rounds: 3, patience: time.Hour}); err != nil {
				t.Fatalf("%v\n%s", err, &out)
			}
			for _, want := range []string{
				`shard a +customers 1-3 +orders 1-3 +order_items 1-6\n +shard b +customers 1-3 +orders 1-3 +order_items 1-6\n`,
				`✗ Error 1062 .*Duplicate entry`,
				`shard a +customers 1-3 +orders 1-3 +order_items 1-6\n +shard b +customers 4-6 +orders 4-6 +order_items 7-12\n`,
				`✓ 6 orders`,
				`(?m)^ +mysql +2,003 +[\d,]+ +±\d+% +1\.00 +- +[1-9][\d,]*$`,
				`(?m)^ +mysql-leaf +2,003 +[\d,]+ +±\d+% +\d+\.\d\d +[1-9]\d* +0$`,
			} {
				if !regexp.MustCompile(want).MatchString(out.String()) {
					t.Errorf("the output lacks %q:\n%s", want, &out)
				}
			}
			if strings.Contains(out.String(), "\x1b") || strings.Contains(out.String(), "\r") {
				t.Errorf("codes for a terminal in a file:\n%s", &out)
			}
			for _, line := range strings.Split(out.String(), "\n") {
				if n := len([]rune(line)); n > 80 {
					t.Errorf("line of %d characters: %s", n, line)
				}
			}
			checkCleanedUp(t, target.DSN())
		})
	}
}

func TestSlowServerEndsEarly(t *testing.T) {
	var out bytes.Buffer
	if err := run(t.Context(), &out, options{dsn: mysqltest.DSN(t), orders: 1000, processes: 2, rounds: 10, patience: 1}); err != nil {
		t.Fatal(err)
	}
	if !regexp.MustCompile(`Enough after(.|\n)*mysql-leaf +100 `).MatchString(out.String()) {
		t.Errorf("the second of ten rounds was begun:\n%s", &out)
	}
}

// stopAt cancels a context when a text was written.
type stopAt struct {
	text   string
	cancel func()
	bytes.Buffer
}

func (s *stopAt) Write(p []byte) (int, error) {
	if strings.Contains(string(p), s.text) {
		s.cancel()
	}
	return s.Buffer.Write(p)
}

func TestInterruptCleansUp(t *testing.T) {
	for _, text := range []string{"1. Two shards", "2. The same code", "   20 %"} {
		t.Run(text, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			out := &stopAt{text: text, cancel: cancel}
			if err := run(ctx, out, options{dsn: mysqltest.DSN(t), orders: 5000, processes: 2, rounds: 2, patience: time.Hour}); err == nil {
				t.Errorf("no error after an interrupt:\n%s", out)
			}
			checkCleanedUp(t, mysqltest.DSN(t))
		})
	}
}

func TestBadDSNIsRefused(t *testing.T) {
	good := mysqltest.Run(t, mysqltest.Config{}).DSN("") // a separate server, since it gets another user
	db, err := sql.Open("mysql", good)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec("CREATE USER leafsql_demo_poor IDENTIFIED BY 'topsecret'"); err != nil {
		t.Fatal(err)
	}
	as := func(user, password string) string {
		cfg, err := mysql.ParseDSN(good)
		if err != nil {
			t.Fatal(err)
		}
		cfg.User, cfg.Passwd = user, password
		return cfg.FormatDSN()
	}
	for name, tt := range map[string]struct{ dsn, want string }{
		"no slash":       {"root:topsecret@tcp(127.0.0.1:3306)", "write for example"},
		"nobody there":   {"root:topsecret@tcp(127.0.0.1:1)/", "check the address"},
		"wrong password": {as("leafsql_demo_poor", "topsecret?"), "check the address, user and password"},
		"no rights":      {as("leafsql_demo_poor", "topsecret"), "GRANT ALL ON `leafsql\\_demo\\_%`.* TO 'leafsql_demo_poor'"},
		"unknown leaf":   {as("leafsql_demo_poor", "topsecret") + "?leafTabels=x", "leafTabels"},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			err := run(t.Context(), &out, options{dsn: tt.dsn, orders: 10, processes: 1, rounds: 1})
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want one with %q", err, tt.want)
			} else if strings.Contains(err.Error()+out.String(), "topsecret") {
				t.Errorf("the password is shown: %v", err)
			}
		})
	}
	checkCleanedUp(t, good)
}

// checkCleanedUp fails if a database of the demo is still there.
func checkCleanedUp(t *testing.T, dsn string) {
	t.Helper()
	db, err := sql.Open("mysql", dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var left int
	if err := db.QueryRow(`SELECT COUNT(*) FROM information_schema.schemata WHERE schema_name LIKE 'leafsql\_demo\_%'`).Scan(&left); err != nil {
		t.Fatal(err)
	}
	if left != 0 {
		t.Errorf("%d databases are left behind", left)
	}
}

func TestBarsAreRedrawnInATerminal(t *testing.T) {
	var out bytes.Buffer
	scr := &screen{out: &out, terminal: true, colour: true}
	bars := []*bar{{label: "one", total: 10}, {label: "two", total: 10}}
	scr.draw(bars)
	bars[1].done = 5
	scr.draw(bars)
	if got := out.String(); strings.Count(got, "\x1b[2A") != 1 || strings.Count(got, "###############\x1b[0m") != 1 {
		t.Errorf("the second drawing must go up two lines and show half a bar: %q", got)
	}
}
