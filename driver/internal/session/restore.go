package session

import (
	"context"
	"time"

	"github.com/leafsql/leafsql/internal/servererr"
)

// restoreTimeout is the time limit of each statement that restores a session, if the caller's context can end.
const restoreTimeout = 5 * time.Second

// Restore runs statements that restore the application's session, like ExecUncancelled, and reports whether
// they succeeded. If a statement fails, Restore closes the connection: otherwise the application's next statements
// would run in a session with other settings than the application has set.
func (s *Session) Restore(ctx context.Context, texts ...string) bool {
	for _, text := range texts {
		// NoSavepoint: after a deadlock the server has already rolled everything back.
		if err := s.ExecUncancelled(ctx, text); err != nil && !servererr.Is(err, servererr.NoSavepoint) {
			s.CloseBroken()
			return false
		}
	}
	return true
}

// ExecUncancelled runs a statement even if the caller's context has ended, as RetryUncancelled does.
func (s *Session) ExecUncancelled(ctx context.Context, text string) error {
	return RetryUncancelled(ctx, func(ctx context.Context) error { return s.ExecText(ctx, text) })
}

// RetryUncancelled runs call even if ctx has ended. If the server kills the query, it runs call up to three times.
// If ctx can end, each call gets a new context instead, with a time limit of 5 seconds. RetryUncancelled
// returns the error of the last call.
func RetryUncancelled(ctx context.Context, call func(context.Context) error) (err error) {
	for range 3 {
		own, cancel := ctx, context.CancelFunc(func() {})
		if ctx.Done() != nil {
			own, cancel = context.WithTimeout(context.WithoutCancel(ctx), restoreTimeout)
		}
		err = call(own)
		cancel()
		if !servererr.Is(err, servererr.QueryKilled) {
			break
		}
	}
	return err
}

// CloseBroken closes the connection because its session could not be restored, and sets Broken.
func (s *Session) CloseBroken() {
	s.Broken = true
	s.Conn.Close()
}
