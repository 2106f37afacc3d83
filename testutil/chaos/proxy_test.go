//go:build storm

package chaos

import (
	"database/sql"
	"flag"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/leafsql/leafsql/testutil/freeport"
	"github.com/leafsql/leafsql/testutil/mysqltest"
	"github.com/leafsql/leafsql/testutil/process"
)

var proxyRows = flag.Int("proxy.rows", 60_000, "rows that all programs together insert through the proxies, on each server")

// TestStormProxy: programs in five languages insert through two proxies, while proxies, the server and programs are killed. No
// id is stored twice, and no acknowledged row is lost.
func TestStormProxy(t *testing.T) {
	for _, kind := range mysqltest.Kinds() {
		t.Run(string(kind), func(t *testing.T) {
			r := startProxies(t, kind)
			var all sync.WaitGroup
			again := func(lo, hi time.Duration, kill func()) {
				all.Go(func() {
					for pause := lo; r.sleep(pause) && !r.isNearlyDone(); pause = r.randomDuration(lo, hi) {
						kill()
					}
				})
			}
			again(200*time.Millisecond, 1500*time.Millisecond, r.killWriter)
			for i := range r.proxies {
				again(time.Duration(i+1)*400*time.Millisecond, 4*time.Second, func() { r.killProxy(i) })
			}
			again(1500*time.Millisecond, 8*time.Second, r.killServer)
			r.wait()
			all.Wait()
			r.compareRows()
		})
	}
}

// A proxyRun is a run with a server, two proxies in front of it, and programs that write through the proxies.
type proxyRun struct {
	*run
	server  *mysqltest.Server
	proxies [2]*process.Process
	ledgers []ledger   // by writer
	pauses  pauseTimer // pauses of all writers together, while the server is up
}

// startProxies starts the server, the proxies and the programs.
func startProxies(t *testing.T, kind mysqltest.Kind) *proxyRun {
	installed, err := process.Cache("clients")
	mustSucceed(t, err)
	made := t.TempDir()
	compile(t, made, installed)
	writers := 0
	for _, p := range programs {
		writers += p.writers
	}
	r := &proxyRun{run: newRun(t, fmt.Sprintf("%s, %d programs in %d languages, %d rows", kind, writers, len(programs), *proxyRows))}
	// Data that the server has written survives its process, except for half-written pages without the doublewrite buffer.
	r.server = mysqltest.Run(t, mysqltest.Config{Kind: kind, Args: []string{"--innodb-doublewrite=1", "--innodb-flush-log-at-trx-commit=1"}})
	for _, statement := range []string{
		"CREATE DATABASE shop",
		"CREATE TABLE shop.orders (id BIGINT NOT NULL, writer INT NOT NULL, n BIGINT NOT NULL, KEY (id))", // accepts duplicate ids
		"CREATE USER app@'%' IDENTIFIED BY 'a secret'",
		"GRANT ALL ON shop.* TO app@'%'",
	} {
		execute(t, r.server.DSN(""), statement)
	}
	leafsql := func(args ...string) *exec.Cmd {
		cmd := exec.Command(made+"/leafsql", append(args, "-dsn", "env:LEAFSQL_DSN")...)
		cmd.Env = append(os.Environ(), "LEAFSQL_DSN="+r.server.DSN("shop")+"?leafTables=orders:id")
		return cmd
	}
	if out, err := leafsql("init").CombinedOutput(); err != nil {
		t.Fatalf("leafsql init: %v\n%s", err, out)
	}
	var ports [len(r.proxies)]string
	for i := range r.proxies {
		port, err := freeport.Find()
		mustSucceed(t, err)
		ports[i] = strconv.Itoa(port)
		addr := net.JoinHostPort("127.0.0.1", ports[i])
		r.proxies[i], err = process.New(process.Config{
			Name:    "proxy",
			Command: func(string) *exec.Cmd { return leafsql("proxy", "-listen", addr) },
			Ready:   process.Accepts(addr),
		})
		mustSucceed(t, err)
		t.Cleanup(func() { r.proxies[i].Finish(t) })
		mustSucceed(t, r.proxies[i].Start())
	}
	r.ledgers = make([]ledger, writers)
	host, _, err := net.SplitHostPort(r.server.Addr())
	mustSucceed(t, err)
	each := (*proxyRows + writers - 1) / writers
	r.startCrew(writers, each, writerFuncs{
		startLife: func(m *member, left int) *exec.Cmd {
			cmd := programOf(m.number).command(made, installed, kind)
			cmd.Env = append(os.Environ(), append(cmd.Env, "DB_HOST="+host, "DB_PORTS="+strings.Join(ports[:], ","), "DB_USER=app",
				"DB_PASSWORD=a secret", "DB_NAME=shop", fmt.Sprint("WRITER=", m.number), fmt.Sprint("NEXT=", m.lives*numbersPerLife), fmt.Sprint("LEFT=", left))...)
			return cmd
		},
		readLine: func(m *member, line string) (int, error) {
			rows, err := r.ledgers[m.number].recordLine(line)
			if rows > 0 {
				r.pauses.end()
			}
			return rows, err
		},
	})
	return r
}

// numbersPerLife is more than the numbers that a writer uses in one life.
const numbersPerLife = 1_000_000_000

// killWriter kills a random writer, like a crash, if it has not finished. The writer is started again at once. All writers have the
// same chance to be killed, so that a slow starter is not killed again and again at the end.
func (r *proxyRun) killWriter() {
	r.mu.Lock()
	m := r.crew.members[r.random.IntN(len(r.crew.members))]
	r.mu.Unlock()
	if m.signal(syscall.SIGKILL) {
		r.countDisturbance("writer killed -9", fmt.Sprintf("%d, in %s", m.number, programOf(m.number).language))
	}
}

// killProxy kills one proxy, like a crash, and starts it again at once.
func (r *proxyRun) killProxy(i int) {
	if err := r.proxies[i].Kill9(); err != nil {
		r.Error(err)
	}
	r.countDisturbance("proxy killed -9", fmt.Sprint(i))
	if err := r.proxies[i].Start(); err != nil {
		r.Error(err)
	}
}

// killServer kills the server, like a crash, and starts it again after up to two seconds.
func (r *proxyRun) killServer() {
	if err := r.server.Kill9(); err != nil {
		r.Error(err)
	}
	r.pauses.end()
	away := r.randomDuration(0, 2*time.Second)
	r.countDisturbance("server killed -9", fmt.Sprintf("for %v and its boot", away.Round(time.Millisecond)))
	r.sleep(away)
	if err := r.server.Launch(); err != nil {
		r.Error(err)
	}
	r.pauses.skip()
	r.logEvent("the server is back")
}

// compareRows compares the results that the programs received with the stored rows, and prints the figures.
func (r *proxyRun) compareRows() {
	for _, what := range []string{"writer killed -9", "proxy killed -9", "server killed -9"} {
		if r.counts[what] == 0 {
			r.Errorf("no %s: with more rows it would not be over before", what)
		}
	}
	for _, p := range r.proxies {
		log, err := os.ReadFile(p.Dir() + "/log")
		mustSucceed(r.T, err)
		if fault := "ended because of a bug in leafsql"; strings.Contains(string(log), fault) {
			r.Errorf("a session of a proxy %s", fault)
		}
	}
	db, err := sql.Open("mysql", r.server.DSN("shop"))
	mustSucceed(r.T, err)
	defer db.Close()
	var stored, ids, numbers, invalid int64
	mustSucceed(r.T, db.QueryRow("SELECT COUNT(*), COUNT(DISTINCT id), COUNT(DISTINCT writer, n), COUNT(IF(id < 1, 1, NULL)) FROM orders").
		Scan(&stored, &ids, &numbers, &invalid))
	if ids != stored || numbers != stored || invalid != 0 {
		r.Errorf("%d rows have %d distinct ids, and are %d rows that programs sent; %d ids are below 1", stored, ids, numbers, invalid)
	}
	lost := r.countLost(db)
	if lost > 0 {
		r.Errorf("%d acknowledged rows are not there under the id that the program was told", lost)
	}
	for writer := range r.ledgers {
		for _, text := range r.ledgers[writer].unexpected() {
			r.Errorf("writer %d, in %s, was told an error that no crash explains: %s", writer, programOf(writer).language, text)
		}
	}
	version, err := r.server.Version()
	mustSucceed(r.T, err)
	r.report(
		reportLine{"server", version},
		reportLine{"rows acknowledged", r.crew.acknowledged()},
		reportLine{"rows a second", fmt.Sprintf("%.0f", float64(r.crew.acknowledged())/r.took.Seconds())},
		reportLine{"rows in the table", stored},
		reportLine{"unacknowledged among them", stored - r.crew.acknowledged() + int64(lost)},
		reportLine{"distinct ids", ids},
		reportLine{"DUPLICATES", stored - ids},
		reportLine{"ACKNOWLEDGED AND LOST", lost},
		reportLine{"longest time without one, server up", r.pauses.longest.Round(time.Millisecond)},
	)
	r.Log(r.formatByLanguage())
}

// countLost returns the number of acknowledged rows that are not stored with the id that their program received.
func (r *proxyRun) countLost(db *sql.DB) (lost int) {
	type row struct{ writer, n int64 }
	stored := make(map[int64]row)
	rows, err := db.Query("SELECT id, writer, n FROM orders")
	mustSucceed(r.T, err)
	defer rows.Close()
	for rows.Next() {
		var id int64
		var s row
		mustSucceed(r.T, rows.Scan(&id, &s.writer, &s.n))
		stored[id] = s
	}
	mustSucceed(r.T, rows.Err())
	for writer := range r.ledgers {
		for _, s := range r.ledgers[writer].statements {
			for i := range int64(s.rows) {
				if got, ok := stored[s.id+i]; !ok || got != (row{int64(writer), s.n + i}) {
					if lost++; lost <= 10 {
						r.Logf("%s, writer %d: its row %d has the id %d, and there is %v", programOf(writer).language, writer, s.n+i, s.id+i, got)
					}
				}
			}
		}
	}
	return lost
}

// formatByLanguage returns a table with the results of each language's programs, and the numbers of errors by
// error number.
func (r *proxyRun) formatByLanguage() string {
	var b strings.Builder
	table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "\nlanguage\tprograms\tlives\tstatements\trows\trows/s\tlongest without OK\terrors\t")
	errors := make(map[string]int)
	for _, p := range programs {
		var rows, statements, refused, lives int
		var last time.Time
		var longest time.Duration
		for writer, m := range r.crew.members {
			if programOf(writer).language != p.language {
				continue
			}
			l := &r.ledgers[writer]
			rows, statements = rows+int(m.acknowledged.Load()), statements+len(l.statements)
			refused, lives = refused+int(m.refused.Load()), lives+m.lives
			longest = max(longest, l.pauses.longest)
			if l.pauses.last.After(last) {
				last = l.pauses.last
			}
			for number, told := range l.errors {
				errors[number] += told.times
			}
		}
		fmt.Fprintf(table, "%s\t%d\t%d\t%d\t%d\t%.0f\t%v\t%d\t\n",
			p.language, p.writers, lives, statements, rows, float64(rows)/last.Sub(r.began).Seconds(), longest.Round(time.Millisecond), refused)
	}
	table.Flush()
	b.WriteString("errors by number:")
	for _, number := range slices.Sorted(maps.Keys(errors)) {
		fmt.Fprintf(&b, " %s × %d", number, errors[number])
	}
	return b.String()
}
