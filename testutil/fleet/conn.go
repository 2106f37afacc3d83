package fleet

import (
	"context"
	"database/sql/driver"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
)

// Connect implements driver.Connector.
func (s *Server) Connect(context.Context) (driver.Conn, error) {
	return &conn{server: s, pool: noPool}, nil
}

// Driver implements driver.Connector.
func (s *Server) Driver() driver.Driver { return mysql.MySQLDriver{} }

// conn is a connection to the model of the server, with the methods of go-sql-driver's.
type conn struct {
	server    *Server
	pool      int
	identity  int       // Server.identity when the connection was opened
	busyUntil time.Time // time at which the server finishes the last statement
	closed    bool
}

// enter counts the connection for a pool.
func (c *conn) enter(pool int) {
	if c.pool == noPool {
		c.pool = pool
		c.server.noteOpen(pool, 1)
	}
}

func (c *conn) Close() error {
	if pool := c.pool; pool != noPool {
		c.pool = noPool
		if busy := time.Until(c.busyUntil); busy > 0 {
			time.AfterFunc(busy, func() { c.server.noteOpen(pool, -1) })
		} else { // such a timer can crash Go 1.26's runtime in a bubble of synctest, with the race detector
			c.server.noteOpen(pool, -1)
		}
	}
	return nil
}

func (c *conn) Prepare(string) (driver.Stmt, error) { return nil, driver.ErrSkip }
func (c *conn) PrepareContext(context.Context, string) (driver.Stmt, error) {
	return nil, driver.ErrSkip
}
func (c *conn) Begin() (driver.Tx, error) { return nil, driver.ErrSkip }
func (c *conn) BeginTx(context.Context, driver.TxOptions) (driver.Tx, error) {
	return nil, driver.ErrSkip
}
func (c *conn) Ping(context.Context) error               { return nil }
func (c *conn) ResetSession(context.Context) error       { return nil }
func (c *conn) IsValid() bool                            { return !c.closed }
func (c *conn) CheckNamedValue(*driver.NamedValue) error { return nil }

func (c *conn) ExecContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Result, error) {
	a, err := c.server.run(ctx, c, text, args)
	if err != nil {
		return nil, err
	}
	return a, nil
}

func (c *conn) QueryContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Rows, error) {
	a, err := c.server.run(ctx, c, text, args)
	if err != nil {
		return nil, err
	}
	return a, nil
}

// answer is the result of a statement.
type answer struct {
	columns      []string
	rows         [][]driver.Value
	id, affected int64
}

func (a *answer) LastInsertId() (int64, error) { return a.id, nil }
func (a *answer) RowsAffected() (int64, error) { return a.affected, nil }
func (a *answer) Columns() []string            { return a.columns }
func (a *answer) Close() error                 { return nil }
func (a *answer) Next(dest []driver.Value) error {
	if len(a.rows) == 0 {
		return io.EOF
	}
	copy(dest, a.rows[0])
	a.rows = a.rows[1:]
	return nil
}

// value returns an answer with one row.
func value(values ...driver.Value) *answer {
	return &answer{columns: make([]string, len(values)), rows: [][]driver.Value{values}}
}

// answerTables answers statements that are not about ids. All tables of the application have the columns id and a, and
// no rows.
func answerTables(k Kind, text string, args []driver.NamedValue) *answer {
	switch {
	case k == ReadCatalog:
		a := &answer{columns: make([]string, 11)}
		for n := range len(args) / 8 { // db and table for each of four parts
			db, table := args[8*n].Value, args[8*n+1].Value
			a.rows = append(a.rows,
				[]driver.Value{int64(n), int64(0), db, table, int64(1), "id", "bigint(20)", "PRI", nil, "-", "insert,update"},
				[]driver.Value{int64(n), int64(0), db, table, int64(2), "a", "int(11)", "-", nil, "-", "insert,update"},
				[]driver.Value{int64(n), int64(2), db, table, int64(1), "PRIMARY", "unique", "-", "id", "-", "-"})
		}
		return a
	case k == ReadKey:
		return value(nil, nil)
	case strings.Contains(text, "DATABASE()"):
		return value("shop")
	case strings.Contains(text, "@@lower_case_table_names"):
		return value("0 9.7.0")
	}
	return &answer{affected: 1, id: 1}
}

var (
	tagText   = regexp.MustCompile(`WHERE biz_tag = _utf8mb4 X'([0-9A-F]*)'`)
	fetchText = regexp.MustCompile(`^UPDATE .leaf_alloc. SET max_id = LAST_INSERT_ID\(GREATEST\(max_id, (\d+)\) \+ (\d+)\)(.*) WHERE biz_tag = .* AND step BETWEEN 1 AND (\d+)(.*) AND max_id >= (\d+) AND max_id <= (\d+)$`)
	replaced  = regexp.MustCompile(`REPLACE\(description, '([^']*)', '([^']*)'\)`)
	slotText  = regexp.MustCompile(`worker_id = (-?\d+)`)
	newSlot   = regexp.MustCompile(`VALUES \((-?\d+), (.*)\)$`)
)

// execute executes a statement about ids. lock is the row of leaf_alloc that it locks.
func (s *Server) execute(k Kind, text string) (a *answer, lock *row, err error) {
	switch k {
	case ReadIdentity:
		a = &answer{columns: []string{"name", "value"}}
		for _, name := range []string{"server_uuid", "server_id", "hostname", "port", "innodb_flush_log_at_trx_commit", "sync_binlog", "log_bin"} {
			a.rows = append(a.rows, []driver.Value{name, "1"})
		}
		return a, nil, nil
	case ReadRow, Fetch:
		tag, _ := hex.DecodeString(tagText.FindStringSubmatch(text)[1])
		r := s.rows[string(tag)]
		if k == Fetch {
			return s.fetch(r, text), r, nil
		}
		a = value(r.maxID, r.step, r.description, s.hash(), time.Now().Unix(), int64(1))
		a.columns = []string{"max_id", "step", "description", "leafsql@server", "leafsql@now", "@@autocommit"}
		return a, r, nil
	case WriteWorker:
		return s.writeSlot(text)
	}
	return s.readSlot(text), nil, nil
}

// fetch executes the UPDATE of a fetch.
func (s *Server) fetch(r *row, text string) *answer {
	m := fetchText.FindStringSubmatch(text)
	if m == nil {
		fail(text)
	}
	floor, n, step, from, to := number(m[1]), number(m[2]), number(m[4]), number(m[6]), number(m[7])
	if r.step > step || r.maxID < from || r.maxID > to {
		return &answer{}
	}
	switch mark := replaced.FindStringSubmatch(m[3]); {
	case mark == nil && !strings.Contains(r.description, s.hash()): // Guard
		return &answer{}
	case mark != nil && !strings.Contains(r.description, mark[1]):
		return &answer{}
	case mark != nil:
		r.description = strings.Replace(r.description, mark[1], mark[2], 1)
		s.jumps++
	}
	r.maxID = max(r.maxID, floor) + n
	return &answer{affected: 1, id: r.maxID}
}

// fail ends the program with a message: a panic would wait for locks of database/sql.
func fail(what string) {
	fmt.Fprintln(os.Stderr, "fleet: the model does not know", what)
	os.Exit(1)
}

func number(text string) int64 {
	n, _ := strconv.ParseInt(text, 10, 64)
	return n
}

// writeSlot executes an INSERT or UPDATE of leaf_worker. A row is stored as the assignments of an UPDATE.
func (s *Server) writeSlot(text string) (*answer, *row, error) {
	if m := newSlot.FindStringSubmatch(text); m != nil {
		id := int(number(m[1]))
		if _, exists := s.workers[id]; exists {
			return &answer{}, nil, &mysql.MySQLError{Number: 1062, Message: "Duplicate entry"}
		}
		v := strings.Split(m[2], ", ")
		s.workers[id] = fmt.Sprintf("nonce = %s, hw = %s, free = %s, owner = %s, registry = %s", v[0], v[1], v[2], v[3], v[4])
		return &answer{affected: 1}, nil, nil
	}
	id := int(number(slotText.FindStringSubmatch(text)[1]))
	set, where, _ := strings.Cut(text, " WHERE worker_id = ")
	_, where, _ = strings.Cut(where, " AND ")
	if s.workers[id] != strings.ReplaceAll(where, " AND ", ", ") {
		return &answer{}, nil, nil
	}
	_, s.workers[id], _ = strings.Cut(set, " SET ")
	return &answer{affected: 1}, nil, nil
}

// readSlot executes a query about worker ids.
func (s *Server) readSlot(text string) *answer {
	switch {
	case strings.Contains(text, "TIMESTAMPDIFF("):
		return value(time.Now().UnixMicro())
	case strings.Contains(text, "SELECT @@autocommit, "):
		return value(int64(1), "server "+s.hash(), time.Now().Unix())
	case strings.HasPrefix(text, "SELECT worker_id, hw "): // no process of this host was here before
		return &answer{columns: make([]string, 2)}
	}
	a := &answer{columns: make([]string, 5)}
	if stored, exists := s.workers[int(number(slotText.FindStringSubmatch(text)[1]))]; exists {
		var values []driver.Value
		for _, v := range strings.Split(stored, ", ") {
			_, v, _ = strings.Cut(v, " = ")
			if digits, quoted := strings.CutPrefix(v, "_utf8mb4 X'"); quoted {
				b, _ := hex.DecodeString(strings.TrimSuffix(digits, "'"))
				v = string(b)
			}
			values = append(values, v)
		}
		a.rows = append(a.rows, values)
	}
	return a
}
