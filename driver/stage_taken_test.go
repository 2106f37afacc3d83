package driver

import (
	"context"
	"database/sql/driver"
	"errors"
	"strings"
	"testing"

	"github.com/leafsql/leafsql/testutil/mysqltest"
)

// lost makes connections on which no upsert can be prepared or explained as long as err is set.
type lost struct {
	driver.Connector
	err error
}

type lostConn struct {
	innerConn
	lost *lost
}

func (l *lost) Connect(ctx context.Context) (driver.Conn, error) {
	dc, err := l.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &lostConn{dc.(innerConn), l}, nil
}

func (c *lostConn) QueryContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Rows, error) {
	if c.lost.err != nil && strings.Contains(text, "ON DUPLICATE") {
		return nil, c.lost.err
	}
	return c.innerConn.QueryContext(ctx, text, args)
}

func (c *lostConn) PrepareContext(ctx context.Context, text string) (driver.Stmt, error) {
	if c.lost.err != nil && strings.Contains(text, "ON DUPLICATE") {
		return nil, c.lost.err
	}
	return c.innerConn.PrepareContext(ctx, text)
}

// TestTakenIsAsked: where the server gave no answer to whether it takes a
// statement, that one does not run, and the next one asks again.
func TestTakenIsAsked(t *testing.T) {
	for _, target := range mysqltest.Targets(t) {
		l := &lost{}
		db := openWrapped(t, target, func(inner driver.Connector) driver.Connector { l.Connector = inner; return l },
			"CREATE TABLE t (id BIGINT PRIMARY KEY, a INT UNIQUE)", "CREATE TABLE s (a INT)", "INSERT INTO s VALUES (1)")
		const ambiguous = "INSERT INTO t (a) SELECT a FROM s ON DUPLICATE KEY UPDATE a = a + 1"
		l.err = errors.New("no answer")
		if _, err := db.Exec(ambiguous); !errors.Is(err, l.err) {
			t.Errorf("%s: %v, want %v", target.Name, err, l.err)
		}
		l.err = nil
		if _, err := db.Exec(ambiguous); !isServerError(err, errAmbiguous) {
			t.Errorf("%s: %v, want the server's error %d", target.Name, err, errAmbiguous)
		}
		for _, clear := range []string{
			"INSERT INTO t (a) SELECT a FROM s ON DUPLICATE KEY UPDATE a = t.a + 1",
			"INSERT IGNORE INTO t (a) SELECT a FROM s ON DUPLICATE KEY UPDATE a = VALUES(a)",
			"INSERT INTO t SELECT NULL, a FROM s WHERE a > ? ON DUPLICATE KEY UPDATE a = t.a + ?",
		} {
			var args []any
			if strings.Contains(clear, "?") {
				args = []any{0, 1}
			}
			if _, err := db.Exec(clear, args...); err != nil {
				t.Errorf("%s: %s: %v", target.Name, clear, err)
			}
		}
		if _, err := db.Exec("INSERT INTO t SELECT NULL, a FROM s WHERE a > ? ON DUPLICATE KEY UPDATE a = a + ?", 0, 1); !isServerError(err, errAmbiguous) {
			t.Errorf("%s: %v, want the server's error %d", target.Name, err, errAmbiguous)
		}
	}
}
