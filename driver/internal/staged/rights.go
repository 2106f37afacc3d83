package staged

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
func (s *Run) withRights(ctx context.Context, call func() error) error {
	err := call()
	if !servererr.Denied(err) {
		return err
	}
	if s.Session.DB != "" && !s.Session.DBUnknown {
		if _, use := s.Session.Conn.ExecContext(ctx, "USE "+quote.Name(s.Session.DB), nil); use != nil {
			return err
		}
		err = call()
	}
	now, last := time.Now().UnixNano(), s.Server.replaced.Load()
	if servererr.Denied(err) && now-last >= int64(replaceRefused) && s.Server.replaced.CompareAndSwap(last, now) {
		s.Session.Broken = true
	}
	return err
}
