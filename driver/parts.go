package driver

import (
	"context"
	"database/sql/driver"
	"errors"

	"github.com/leafsql/leafsql/driver/internal/insert"
	"github.com/leafsql/leafsql/driver/internal/session"
)

// execInParts executes a text that has to be cut: what is behind the cut can
// be planned only when what is before it has run.
func (c *conn) execInParts(ctx context.Context, p *insert.Plan, text string, args []driver.NamedValue) (driver.Result, error) {
	if len(args) > 0 && !c.connector.interpolates {
		return nil, driver.ErrSkip // the server has an error for it
	}
	if err := c.mayCut(ctx, text); err != nil {
		return nil, err
	}
	before, behind := partArgs(p, args)
	first, err := c.ExecContext(ctx, text[:p.Cut], before)
	if err != nil {
		return nil, err
	}
	second, err := c.ExecContext(ctx, text[p.Cut:], behind)
	if err != nil {
		return nil, partError(err)
	}
	return joined(first, second), nil
}

// queryInParts is execInParts for a text that answers with rows. Those of its
// first part could not be had with the others: it must be an INSERT without
// any, of those that take a text of their own.
func (c *conn) queryInParts(ctx context.Context, p *insert.Plan, text string, args []driver.NamedValue) (driver.Rows, error) {
	if err := c.mayCut(ctx, text); err != nil {
		return nil, err
	}
	first, err := c.Statement(ctx, text[:p.Cut])
	if err != nil {
		return nil, err
	}
	if in := first.Plan.Inserts; len(in) != 1 || !in[0].NeedsOwnText() || in[0].Returning || first.Plan.Results != 1 {
		return nil, &insert.Refusal{Reason: "its statements have to be sent one by one, and the rows of all but the last would be lost", Fix: "send it with Exec, or send them one by one"}
	}
	before, behind := partArgs(p, args)
	if _, err := c.ExecContext(ctx, text[:p.Cut], before); err != nil {
		return nil, err
	}
	rows, err := c.QueryContext(ctx, text[p.Cut:], behind)
	return rows, partError(err)
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

// partArgs are the arguments of a text's two parts.
func partArgs(p *insert.Plan, args []driver.NamedValue) (before, behind []driver.NamedValue) {
	if len(args) == 0 {
		return nil, nil
	}
	return args[:p.CutInput], session.Renumber(args[p.CutInput:])
}

// partError keeps a part that cannot be executed from being taken for the text.
func partError(err error) error {
	if err == driver.ErrSkip {
		return errors.New("leafsql: a text that runs in parts: an argument cannot be put into the text; write its statements one by one")
	}
	return err
}
