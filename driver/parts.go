package driver

import (
	"context"
	"database/sql/driver"
	"errors"
	"slices"

	"github.com/leafsql/leafsql/driver/internal/insert"
)

// execInParts executes a text that has to be cut: what is behind the cut can
// be planned only when what is before it has run.
func (c *conn) execInParts(ctx context.Context, p *insert.Plan, text string, args []driver.NamedValue) (driver.Result, error) {
	if len(args) > 0 && !c.connector.interpolates() {
		return nil, driver.ErrSkip // the server has an error for it
	}
	if err := c.mayCut(ctx, text); err != nil {
		return nil, err
	}
	var before, behind []driver.NamedValue
	if len(args) > 0 {
		before, behind = args[:p.CutInput], renumber(args[p.CutInput:])
	}
	first, err := c.ExecContext(ctx, text[:p.Cut], before)
	if err != nil {
		return nil, err
	}
	second, err := c.ExecContext(ctx, text[p.Cut:], behind)
	if err == driver.ErrSkip { // it would be taken for the text's
		err = errors.New("leafsql: a text that runs in parts: an argument cannot be put into the text; write its statements one by one")
	}
	if err != nil {
		return nil, err
	}
	return joined(first, second), nil
}

// refuseParts is execInParts for a text that is to answer with rows: those of its first
// part could not be had with the others.
func (c *conn) refuseParts(ctx context.Context, text string) error {
	if err := c.mayCut(ctx, text); err != nil {
		return err
	}
	return &RefusedError{Reason: "its statements have to be sent one by one, and the rows of all but the last would be lost", Fix: "send it with Exec, or send them one by one"}
}

// mayCut says that a text may be sent in parts: only where the server would run its
// statements, so that none runs that a connection for single ones is safe from.
func (c *conn) mayCut(ctx context.Context, text string) error {
	if several, err := c.allowsSeveral(ctx, text); several || err != nil {
		return err
	}
	return c.prepareError(ctx, text)
}

// prepareError is the server's error for a text of several statements, which preparing
// it has always, and runs none. Should the server read one statement, it is none that
// is filled.
func (c *conn) prepareError(ctx context.Context, text string) error {
	s, err := c.innerConn.PrepareContext(ctx, text)
	if err != nil {
		return err
	}
	s.Close()
	return &RefusedError{Reason: "it is read as several statements, and the server takes it for one", Fix: "write it in a simpler form"}
}

// renumber gives arguments the ordinals of a text of their own.
func renumber(args []driver.NamedValue) []driver.NamedValue {
	args = slices.Clone(args)
	for i := range args {
		args[i].Ordinal = i + 1
	}
	return args
}
