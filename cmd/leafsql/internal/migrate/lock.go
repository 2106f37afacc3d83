package migrate

import (
	"context"
	"database/sql"
	sqldriver "database/sql/driver"
	"fmt"
	"hash/fnv"

	"github.com/leafsql/leafsql/cmd/leafsql/internal/survey"
	"github.com/leafsql/leafsql/internal/errprefix"
)

// lockTag locks a tag's tables against other runs until release is called, and reads their state again: another
// run may have changed it. The server drops a lock when its connection ends.
func (m *Migration) lockTag(ctx context.Context, before *Tag) (t *Tag, release func(), err error) {
	conns := make(map[*survey.Shard]*sql.Conn)
	release = func() {
		for _, conn := range conns {
			conn.Raw(func(any) error { return sqldriver.ErrBadConn })
		}
	}
	defer func() {
		if err != nil {
			release()
		}
	}()
	for _, o := range before.tables {
		conn, err := conns[o.Shard], error(nil)
		if conn == nil {
			if conn, err = o.Shard.DB.Conn(ctx); err != nil {
				return nil, release, fmt.Errorf("leafsql: migrate on %s: %w; run it again", o.Shard.Label, errprefix.Trim(err))
			}
			conns[o.Shard] = conn
			_, err = conn.ExecContext(ctx, "SET SESSION wait_timeout = 2147483") // the largest value that every server accepts: an ALTER may take hours
		}
		var held sql.NullBool
		if err == nil {
			// It waits for 3 seconds, because the server may still be closing the connection of a run that has ended.
			err = conn.QueryRowContext(ctx, "SELECT GET_LOCK(?, 3)", lockName(o)).Scan(&held)
		}
		switch {
		case err != nil:
			return nil, release, fmt.Errorf("leafsql: migrate on %s: GET_LOCK, which prevents a second run: %w; allow it for this user, or on this server, for the migration", o.Shard.Label, errprefix.Trim(err))
		case !held.Bool:
			return nil, release, fmt.Errorf("leafsql: another leafsql migrate is changing %s; wait until it has ended, and check the next step", o.Location())
		}
	}
	if t, err = m.findTag(ctx, before); err == nil {
		t.Obstacles = before.Obstacles
	}
	return t, release, err
}

// lockName returns the name of a table's lock. The name is a hash, because names have at most 64 letters.
func lockName(t *table) string {
	h := fnv.New128a()
	h.Write([]byte(t.Name()))
	return fmt.Sprintf("leafsql migrate %x", h.Sum(nil))
}
