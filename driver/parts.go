package driver

import (
	"context"
	"database/sql/driver"
	"errors"

	"github.com/leafsql/leafsql/driver/internal/insert"
	"github.com/leafsql/leafsql/driver/internal/session"
)

// runInParts runs a query that has to be cut into two parts, because the second part can be
// planned only after the first part has run. If rows are requested, only the rows of the last
// statement can be returned, so the first part must be an INSERT that returns no rows.
func (e *execution) runInParts(ctx context.Context) error {
	c, p := e.c, e.st.Plan
	if len(e.args) > 0 && !c.connector.interpolates {
		return driver.ErrSkip // database/sql then prepares the query, and the server returns an error
	}
	if err := c.checkCut(ctx, e.text); err != nil {
		return err
	}
	if e.wantRows {
		st, err := c.Statement(ctx, e.text[:p.Cut])
		if err != nil {
			return err
		}
		if in := st.Plan.Inserts; len(in) != 1 || !in[0].NeedsOwnText() || in[0].Returning || st.Plan.Results != 1 {
			return &insert.Refusal{Reason: "its statements have to be sent one by one, and all rows but those of the last statement would be lost", Fix: "send it with Exec, or send them one by one"}
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
	case err == driver.ErrSkip: // it would make database/sql prepare the whole query
		return errors.New("leafsql: a query that runs in parts has an argument that cannot be written into it; send its statements one by one")
	case err != nil:
		return err
	}
	if e.rows = rest.rows; !e.wantRows {
		e.result = joinResults(first.result, rest.result)
	}
	return nil
}

// checkCut returns nil if a query may be sent in parts, which requires a connection that allows several
// statements. Without this check, a single-statement connection would run statements that its server rejects.
func (c *conn) checkCut(ctx context.Context, text string) error {
	if several, err := c.AllowsMultiStatements(ctx, text); several || err != nil {
		return err
	}
	return c.prepareError(ctx, text)
}

// prepareError returns the server's error for a query with several statements. Preparing
// such a query always fails, and runs nothing. If the server reads the query as one statement,
// prepareError returns a refusal.
func (c *conn) prepareError(ctx context.Context, text string) error {
	if err := c.TryPrepare(ctx, text); err != nil {
		return err
	}
	return &insert.Refusal{Reason: "leafsql reads it as several statements, and the server as one", Fix: "write it in a simpler form"}
}
