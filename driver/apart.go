package driver

import (
	"context"
	"database/sql/driver"

	"github.com/leafsql/leafsql/driver/internal/insert"
)

// runStaged runs a staged statement, once more where its table has changed.
func (c *conn) runStaged(ctx context.Context, st *statement, text string, args []driver.NamedValue, prepared bool, send textSender) (ran stageResult, err error) {
	if err = c.checkPrograms(ctx, st, st.staged(), text); err != nil {
		return ran, c.connector.counts.note(err)
	}
	if err = c.checkTaken(ctx, st, text, args, prepared); err != nil {
		return ran, err
	}
	ran, err = c.runStagedOnce(ctx, st.staged(), args, prepared, send)
	c.after(st, err)
	if again := c.again(ctx, st, text, err); again != nil && again.staged() != nil {
		st = again
		ran, err = c.runStagedOnce(ctx, st.staged(), args, prepared, send)
		c.after(st, err)
	}
	if err != nil {
		return ran, c.connector.counts.note(c.explain(ctx, st, text, []insert.Block{ran.block}, err))
	}
	collect(ctx, st.plan, []insert.Block{ran.block})
	return ran, nil
}

// execApart executes a statement that takes more than its text.
func (c *conn) execApart(ctx context.Context, st *statement, text string, args []driver.NamedValue, prepared bool) (driver.Result, error) {
	var res driver.Result = driver.RowsAffected(0)
	send := func(ctx context.Context, text string, args []driver.NamedValue) (driver.Result, error) {
		answer, err := c.execArgs(ctx, text, args, prepared)
		if err == nil {
			res = answer
		}
		return answer, err
	}
	if st.staged() == nil {
		known, blocks, err := c.evaluate(ctx, st, text, args, prepared, send)
		switch {
		case err != nil:
			return nil, err
		case len(blocks) == 0:
			return res, nil
		}
		return c.result(ctx, known.plan, blocks, res)
	}
	ran, err := c.runStaged(ctx, st, text, args, prepared, send)
	if err != nil {
		return nil, err
	}
	return &result{Result: res, id: ran.id}, nil
}

// queryApart is execApart for a statement that answers with rows. They are
// read before the transaction ends.
func (c *conn) queryApart(ctx context.Context, st *statement, text string, args []driver.NamedValue, prepared bool) (driver.Rows, error) {
	rows := new(readRows) // nothing is sent for a LOAD DATA without rows
	send := func(ctx context.Context, text string, args []driver.NamedValue) (driver.Result, error) {
		answer, err := c.readAll(ctx, text, args, prepared)
		if err != nil {
			return nil, err
		}
		rows = answer
		return driver.RowsAffected(len(rows.rows)), nil
	}
	if st.staged() != nil {
		if _, err := c.runStaged(ctx, st, text, args, prepared, send); err != nil {
			return nil, err
		}
		return rows, nil
	}
	known, blocks, err := c.evaluate(ctx, st, text, args, prepared, send)
	if err != nil {
		return nil, err
	}
	if len(blocks) > 0 {
		collect(ctx, known.plan, blocks)
	}
	return c.tellLate(ctx, known.plan, blocks, rows)
}
