package segment

import (
	"context"
	"database/sql/driver"
	"errors"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/leafsql/leafsql/idgen/segment/internal/tagtable"
	"github.com/leafsql/leafsql/internal/control"
)

// statement is a statement on its way to the server, or its answer on the way back.
type statement struct {
	p        *process
	text     string
	server   int // index of the server that it was sent to
	executed bool
	rows     [][]driver.Value
	res      result
	done     chan error
}

type result struct{ id, n int64 }

func (r result) LastInsertId() (int64, error) { return r.id, nil }
func (r result) RowsAffected() (int64, error) { return r.n, nil }

// execute executes a statement.
func (w *world) execute(s *statement) {
	s.executed = true
	server := w.servers[s.server]
	text := strings.ReplaceAll(s.text, modelHash, "'"+server.hash()+"'")
	if updateText.MatchString(text) {
		w.update(s, server, text)
		return
	}
	if m := ensureText.FindStringSubmatch(text); m != nil {
		if server.row == nil {
			server.row = &modelRow{Row: control.Row{MaxID: number(m[1]), Step: number(m[2])}, description: m[3]}
		}
		return
	}
	switch {
	case strings.HasPrefix(s.text, readRowText):
		if server.row != nil {
			s.rows = [][]driver.Value{{server.row.MaxID, server.row.Step, server.row.description, server.hash(), time.Now().Unix(), int64(1)}}
		}
	case strings.HasPrefix(s.text, "SHOW GLOBAL VARIABLES"):
		for _, name := range []string{"server_uuid", "server_id", "hostname", "port", "innodb_flush_log_at_trx_commit", "sync_binlog", "log_bin"} {
			s.rows = append(s.rows, []driver.Value{name, "1"})
		}
	case text == tagtable.ForeignMarksQuery("'"+server.hash()+"'", "`leaf_alloc`"):
		s.rows = [][]driver.Value{{server.hash(), int64(server.foreignRows)}}
	case s.text == "SELECT MAX(id) FROM t":
		s.rows = [][]driver.Value{{slices.Max(append(slices.Collect(maps.Keys(w.table)), 0))}}
	case strings.HasPrefix(s.text, "INSERT INTO t VALUES "):
		w.table[number(strings.TrimPrefix(s.text, "INSERT INTO t VALUES "))] = true // or error 1062
	default:
		panic("the model does not know " + s.text)
	}
}

func number(s string) int64 {
	n, _ := strconv.ParseInt(s, 10, 64)
	return n
}

// send waits until the search has executed and answered a statement.
func (p *process) send(ctx context.Context, text string) (*statement, error) {
	s := &statement{p: p, text: text, server: p.server, done: make(chan error, 1)}
	switch text {
	case "START TRANSACTION", tagtable.Commit, tagtable.Rollback:
		return s, ctx.Err()
	}
	p.w.mu.Lock()
	if p.dead {
		p.w.mu.Unlock()
		return nil, errors.New("the process is over")
	}
	if at := strings.HasPrefix(text, readRowText) || strings.HasPrefix(text, "SHOW"); !p.w.create && !p.w.delayReads && !strings.HasPrefix(text, "UPDATE") || at && !p.w.delayReads {
		p.w.execute(s)
		p.w.mu.Unlock()
		return s, ctx.Err()
	}
	p.w.pending = append(p.w.pending, s)
	if f, ok := ctx.Value(flightKey{}).(*flight); ok {
		f.sent++
	}
	p.w.mu.Unlock()
	select {
	case err := <-s.done:
		return s, err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// process is its own driver.Connector and driver.Conn.

func (p *process) Connect(context.Context) (driver.Conn, error) { return modelConn{p}, nil }
func (p *process) Driver() driver.Driver                        { return nil }

type modelConn struct{ *process }

func (modelConn) Prepare(string) (driver.Stmt, error) { panic("prepared") }
func (modelConn) Begin() (driver.Tx, error)           { panic("begun") }
func (modelConn) Close() error                        { return nil }

func (c modelConn) ExecContext(ctx context.Context, text string, _ []driver.NamedValue) (driver.Result, error) {
	s, err := c.send(ctx, text)
	if err != nil {
		return nil, err
	}
	return s.res, nil
}

func (c modelConn) QueryContext(ctx context.Context, text string, _ []driver.NamedValue) (driver.Rows, error) {
	s, err := c.send(ctx, text)
	return &modelRows{s}, err
}

// readRowText is the beginning of the statement that reads a tag's row.
const readRowText = "SELECT *, "

type modelRows struct{ s *statement }

func (r *modelRows) Columns() []string {
	switch {
	case strings.HasPrefix(r.s.text, readRowText):
		return []string{"max_id", "step", "description", "leafsql@server", "leafsql@now", "@@autocommit"}
	case strings.Contains(r.s.text, "SHOW") || strings.Contains(r.s.text, "SELECT COUNT"):
		return []string{"name", "value"}
	}
	return []string{"highest"}
}
func (r *modelRows) Close() error { return nil }
func (r *modelRows) Next(dest []driver.Value) error {
	if len(r.s.rows) == 0 {
		return io.EOF
	}
	copy(dest, r.s.rows[0])
	r.s.rows = r.s.rows[1:]
	return nil
}
