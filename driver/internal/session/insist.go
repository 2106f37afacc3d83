package session

import (
	"context"
	"time"

	"github.com/leafsql/leafsql/internal/servererr"
)

// putBackTime bounds each statement that restores a session if the caller's context can end.
const putBackTime = 5 * time.Second

// PutBack runs statements that restore the application's session, as Always does, and reports whether
// they succeeded. If one fails, PutBack closes the connection: the application's next statements would
// run in a different session from the one that they expect.
func (s *Session) PutBack(ctx context.Context, texts ...string) bool {
	for _, text := range texts {
		// After a deadlock the server has rolled everything back already.
		if err := s.Always(ctx, text); err != nil && !servererr.Is(err, servererr.NoSavepoint) {
			s.GiveUp()
			return false
		}
	}
	return true
}

// Always runs a statement even if the caller's context has ended, as Insist does.
func (s *Session) Always(ctx context.Context, text string) error {
	return Insist(ctx, func(ctx context.Context) error { return s.ExecText(ctx, text) })
}

// Insist runs call even if ctx has ended, and up to three times if the server kills the query.
// If ctx can end, each call instead has a new context with a time limit of 5 seconds. Insist returns
// the error of the last call.
func Insist(ctx context.Context, call func(context.Context) error) (err error) {
	for range 3 {
		own, cancel := ctx, context.CancelFunc(func() {})
		if ctx.Done() != nil {
			own, cancel = context.WithTimeout(context.WithoutCancel(ctx), putBackTime)
		}
		err = call(own)
		cancel()
		if !servererr.Is(err, servererr.QueryKilled) {
			break
		}
	}
	return err
}

// GiveUp closes the connection because its session is not as the application left it, and sets Broken.
func (s *Session) GiveUp() {
	s.Broken = true
	s.Conn.Close()
}
