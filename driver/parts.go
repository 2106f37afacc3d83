package driver

import (
	"context"
	"database/sql/driver"
	"errors"

	"github.com/leafsql/leafsql/driver/internal/insert"
	"github.com/leafsql/leafsql/driver/internal/session"
)

// runInParts runs a text that has to be cut: what is behind the cut can
// be planned only when what is before it has run. The rows of its first part could not be
// had with those of the rest: it must be an INSERT without any, of those that take a text of their own.
func (e *execution) runInParts(ctx context.Context) error {
	c, p := e.c, e.st.Plan
	if len(e.args) > 0 && !c.connector.interpolates {
		return driver.ErrSkip // the server has an error for it
	}
	if err := c.mayCut(ctx, e.text); err != nil {
		return err
	}
	if e.wantRows {
		st, err := c.Statement(ctx, e.text[:p.Cut])
		if err != nil {
			return err
		}
		if in := st.Plan.Inserts; len(in) != 1 || !in[0].NeedsOwnText() || in[0].Returning || st.Plan.Results != 1 {
			return &insert.Refusal{Reason: "its statements have to be sent one by one, and the rows of all but the last would be lost", Fix: "send it with Exec, or send them one by one"}
		}
	}
	first, rest := execution{c: c, text: e.text[:p.Cut]}, execution{c: c, text: e.text[p.Cut:], wantRows: e.wantRows}
	if len(e.args) > 0 {
		first.args, rest.args = e.args[:p.CutInput], session.Renumber(e.args[p.CutInput:])
	}
	if err := first.run(ctx); err != nil {
		return err
	}
	switch err := rest.run(ctx); {
	case err == driver.ErrSkip: // which would have the whole text prepared
		return errors.New("leafsql: a text that runs in parts: an argument cannot be put into the text; write its statements one by one")
	case err != nil:
		return err
	}
	if e.rows = rest.rows; !e.wantRows {
		e.result = joined(first.result, rest.result)
	}
	return nil
}

// mayCut says that a text may be sent in parts: only where the server would run its
// statements, so that none runs that a connection for single ones is safe from.
func (c *conn) mayCut(ctx context.Context, text string) error {
	if several, err := c.AllowsSeveral(ctx, text); several || err != nil {
		return err
	}
	return c.prepareError(ctx, text)
}

// prepareError is the server's error for a text of several statements, which preparing
// it has always, and runs none. Should the server read one statement, it is none that
// is filled.
func (c *conn) prepareError(ctx context.Context, text string) error {
	if err := c.TryPrepare(ctx, text); err != nil {
		return err
	}
	return &insert.Refusal{Reason: "it is read as several statements, and the server takes it for one", Fix: "write it in a simpler form"}
}
