package driver

import (
	"cmp"
	"context"
	"database/sql/driver"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/leafsql/leafsql/driver/internal/catalog"
	"github.com/leafsql/leafsql/driver/internal/insert"
)

// Keys that only the server can tell are put into a stage whose column has the key's
// own type. What came of them there takes their place, in the text or among the
// arguments, and the statement runs as any other.

// evaluate runs a statement whose text has such keys. They may read tables, so
// that they and the rows are one transaction.
func (c *conn) evaluate(ctx context.Context, st *statement, text string, args []driver.NamedValue, prepared bool, send textSender) (known *statement, blocks []insert.Block, err error) {
	in := st.apart()
	if err := c.checkPrograms(ctx, st, in, text); err != nil {
		return nil, nil, c.connector.counts.note(err)
	}
	if err := c.checkTaken(ctx, st, text, args, prepared); err != nil {
		return nil, nil, err
	}
	s := c.newStageRun(in, args, prepared)
	c.dropLeftStage(ctx)
	if in.Evaluation.Clock {
		err = s.clock(ctx)
	}
	fill, rest := insert.SplitArgs(in.Evaluation, args)
	var keys []string
	if err == nil {
		keys, err = s.keys(ctx, insert.KeyColumn, in.Evaluation.Fill(s.name, s.hint), renumber(fill), in.Evaluation.Keys())
	}
	if err != nil {
		c.connector.counts.note(err)
	} else {
		for i, k := range keys {
			if k == "" {
				keys[i] = "NULL"
			}
		}
		known, blocks, err = s.runKnown(ctx, in.Evaluation.Text(keys, s.hint), renumber(rest), send)
	}
	if err != nil {
		s.undo(ctx, err)
		return nil, nil, c.explain(ctx, st, text, nil, err)
	}
	return known, blocks, s.end(ctx, "")
}

// runKnown runs a text whose keys are known.
func (s *stageRun) runKnown(ctx context.Context, text string, args []driver.NamedValue, send textSender) (*statement, []insert.Block, error) {
	c := s.c
	st, _, err := c.plan(ctx, text, c.settings)
	switch {
	case err != nil:
		return nil, nil, err
	case st.refusal != nil:
		return nil, nil, c.connector.counts.note(st.refusal)
	case len(st.plan.Inserts) == 0: // all keys are given
		_, err = send(ctx, s.prefix+text, args)
		return st, nil, err
	}
	return c.run(ctx, st, text, args, s.prepared, func(p *insert.Plan, blocks []insert.Block, args []driver.NamedValue) (err error) {
		if len(args) == 0 {
			_, err = send(ctx, s.prefix+p.Text(blocks), nil)
			return err
		}
		t := p.Template(blocks)
		_, err = send(ctx, s.prefix+t.Text, c.bindArgs(p, t, blocks, args))
		c.unbindArgs()
		return err
	})
}

// evaluateArgs gives the arguments of a text with what the server makes of
// those in key columns that only it can tell.
func (c *conn) evaluateArgs(ctx context.Context, st *statement, text string, args []driver.NamedValue, prepared bool) ([]driver.NamedValue, error) {
	p := st.plan
	args = slices.Clone(args)
	for i := range p.Inserts {
		in := &p.Inserts[i]
		var unclear []driver.NamedValue
		for _, key := range in.ArgKeys {
			if m, _ := in.Table.KeyMeaning(args[key.Arg].Value); m == insert.Unclear {
				unclear = append(unclear, args[key.Arg])
			}
		}
		if len(unclear) == 0 {
			continue
		}
		s := c.newStageRun(in, unclear, prepared)
		s.open = true
		fill := p.FillArgs(in, s.name, len(unclear))
		switch {
		case mayReadCounts(text):
			return nil, s.refusal("an argument in its key column is for the server to judge, and asking would change what ROW_COUNT() and FOUND_ROWS() say in it", "put the count into a user variable first")
		case p.Results != len(p.Inserts): // what may change how a value is converted
			return nil, s.refusal("an argument in its key column is for the server to judge, which other statements of the text may change", "send the statement by itself")
		case fill == "":
			return nil, s.refusal("an argument in its key column is for the server to judge, and a version comment keeps that from being asked", "write the statement without that comment")
		}
		if err := c.checkPrograms(ctx, st, in, text); err != nil {
			return nil, err
		}
		c.dropLeftStage(ctx)
		keys, err := s.keys(ctx, "", fill, renumber(unclear), len(unclear))
		c.dropLeftStage(ctx)
		if err != nil {
			return nil, err
		}
		for j, a := range unclear {
			v := &args[a.Ordinal-1].Value
			if *v = nil; keys[j] != "" {
				*v = keys[j]
			}
		}
	}
	return args, nil
}

// keys evaluates n keys: what a text puts into the stage's column of some name,
// "" for the key's own, and what is read from there, "" for NULL.
func (s *stageRun) keys(ctx context.Context, name, fill string, args []driver.NamedValue, n int) (keys []string, err error) {
	defer func() { err = s.named(err) }()
	if err := s.create(ctx, []string{s.t.column}, name); err != nil {
		return nil, err
	}
	if _, err := s.c.execArgs(ctx, s.prefix+fill, args, s.prepared); err != nil {
		return nil, s.keyError(err)
	}
	rows, err := s.c.readAll(ctx, "SELECT "+catalog.Quote(cmp.Or(name, s.t.column))+" FROM "+s.name+" ORDER BY leafsql_n LIMIT "+strconv.Itoa(n+1)+" FOR UPDATE", nil, false)
	if err != nil {
		return nil, err
	}
	if len(rows.rows) != n {
		return nil, s.refusal("the server leaves some of its keys out", "write them as numbers")
	}
	keys = make([]string, n)
	for i, row := range rows.rows {
		keys[i] = text(row[0])
	}
	return keys, nil
}

// unknownColumn finds the column in the server's error 1054: a in "Unknown column
// 't.a' in 'field list'".
var unknownColumn = regexp.MustCompile(`'(?:[^']*\.)?([^'.]*)'`)

// keyError refuses a key that names a column of its row, which is not there
// where the key is evaluated.
func (s *stageRun) keyError(err error) error {
	if m := unknownColumn.FindStringSubmatch(serverMessage(err)); m != nil && isServerError(err, errUnknownColumn) &&
		slices.ContainsFunc(s.in.Table.Columns, func(c string) bool { return strings.EqualFold(c, m[1]) }) {
		return s.refusal("its key is an expression that reads the column "+m[1], "write the value in its place")
	}
	return err
}
