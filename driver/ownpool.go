package driver

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"time"
)

// ownSession undoes what a DSN may set for the application: what we read must
// not come from an old snapshot or be cut short, and what we write must not
// wait for a COMMIT. The short wait is for a table that the application's own
// connection has locked.
const ownSession = "SET autocommit = 1, sql_select_limit = 18446744073709551615, lock_wait_timeout = 1"

// ownConnector makes connections for pools of our own.
type ownConnector struct{ driver.Connector }

func (c ownConnector) Connect(ctx context.Context) (driver.Conn, error) {
	dc, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	x, ok := dc.(driver.ExecerContext)
	if !ok {
		return dc, nil // Connector.Connect says what is missing
	}
	if _, err := x.ExecContext(ctx, ownSession, nil); err != nil {
		dc.Close()
		return nil, err
	}
	return dc, nil
}

// newCatalogPool is for questions about tables: a query of ours on an
// application's connection would change its ROW_COUNT() and, with a pool of
// one inside a transaction, would wait for itself.
func newCatalogPool(inner driver.Connector) *sql.DB {
	db := sql.OpenDB(ownConnector{inner})
	db.SetMaxOpenConns(2)
	db.SetConnMaxIdleTime(30 * time.Second)
	return db
}
