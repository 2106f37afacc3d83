package driver

import (
	"context"
	"time"

	"github.com/leafsql/leafsql/internal/quote"
	"github.com/leafsql/leafsql/internal/servererr"
)

// replaceRefused is how often a pool may replace a connection for want of a right.
const replaceRefused = time.Minute

// withRights calls the server, and once more where a right is missing that may have been
// granted since the session began: it knows those on its database from then, or from
// its last USE. One that is refused still is closed when the pool has it back, for
// rights on *.* and roles are known from the login.
func (c *conn) withRights(ctx context.Context, call func() error) error {
	err := call()
	if !servererr.Denied(err) {
		return err
	}
	if c.DB != "" && !c.DBUnknown {
		if _, use := c.Conn.ExecContext(ctx, "USE "+quote.Name(c.DB), nil); use != nil {
			return err
		}
		err = call()
	}
	now, last := time.Now().UnixNano(), c.connector.replaced.Load()
	if servererr.Denied(err) && now-last >= int64(replaceRefused) && c.connector.replaced.CompareAndSwap(last, now) {
		c.Broken = true
	}
	return err
}
