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
	first, err := c.statement(ctx, text[:p.Cut])
	if err != nil {
		return nil, err
	}
	if in := first.plan.Inserts; len(in) != 1 || !in[0].Alone() || in[0].Returning || first.plan.Results != 1 {
		return nil, &RefusedError{Reason: "its statements have to be sent one by one, and the rows of all but the last would be lost", Fix: "send it with Exec, or send them one by one"}
	}
	before, behind := partArgs(p, args)
	if _, err := c.ExecContext(ctx, text[:p.Cut], before); err != nil {
		return nil, err
	}
	rows, err := c.QueryContext(ctx, text[p.Cut:], behind)
	return rows, partError(err)
}

// partArgs are the arguments of a text's two parts.
func partArgs(p *insert.Plan, args []driver.NamedValue) (before, behind []driver.NamedValue) {
	if len(args) == 0 {
		return nil, nil
	}
	return args[:p.CutInput], renumber(args[p.CutInput:])
}

// partError keeps a part that cannot be executed from being taken for the text.
func partError(err error) error {
	if err == driver.ErrSkip {
		return errors.New("leafsql: a text that runs in parts: an argument cannot be put into the text; write its statements one by one")
	}
	return err
}

// renumber gives arguments the ordinals of a text of their own.
func renumber(args []driver.NamedValue) []driver.NamedValue {
	args = slices.Clone(args)
	for i := range args {
		args[i].Ordinal = i + 1
	}
	return args
}
