package session

import (
	"context"
	"time"

	"github.com/leafsql/leafsql/internal/servererr"
)

// putBackTime bounds each statement that puts a session back, where the caller does not
// wait without bound.
const putBackTime = 5 * time.Second

// PutBack runs what leaves a session as the application left it, and says whether that ran. A
// connection on which it fails is closed: what the application did on it next would not be
// what it means.
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

// Always runs a statement even where the caller's context has ended.
func (s *Session) Always(ctx context.Context, text string) error {
	return Insist(ctx, func(ctx context.Context) error { return s.ExecText(ctx, text) })
}

// Insist calls the server even where the caller's context has ended, and up to three
// times if the call is killed.
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

// GiveUp closes a connection whose session is not what the application left.
func (s *Session) GiveUp() {
	s.Broken = true
	s.Conn.Close()
}
