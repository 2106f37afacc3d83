package planner

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/leafsql/leafsql/driver/internal/insert"
	"github.com/leafsql/leafsql/driver/internal/plancache"
	"github.com/leafsql/leafsql/driver/internal/session"
	"github.com/leafsql/leafsql/driver/internal/tables"
)

// A Prepared is a text that was prepared: what it means was settled then, and its plan
// follows what is known of the tables.
type Prepared struct {
	Text      string
	Statement *Statement
	NumInput  int  // the user's own placeholders
	Fixed     bool // it writes no table that a rule means: what it runs never changes

	p       *Planner
	table   insert.TableName // that it fills; zero: none
	reads   bool             // sql_mode or the character set decide what its text means
	meaning meaning          // when it was prepared
	schema  *tables.Schema
	plans   *plancache.Cache[*Statement]
}

// A meaning is what a session's texts mean: the database in use and, where a text could
// be read in several ways, how the session reads it.
type meaning struct{ db, reading string }

// Prepare settles what a text means that is about to be prepared, with the statement that
// it comes to. The value is valid also with an error.
func (p *Planner) Prepare(ctx context.Context, st *Statement, text string) (s Prepared, err error) {
	s = Prepared{Text: text, Statement: st, NumInput: st.Plan.NumInput, p: p, schema: p.schema, plans: p.plans}
	if len(st.Plan.Inserts) > 0 {
		s.table = st.Plan.Inserts[0].Table.Name
	}
	if s.Fixed = s.table.Table == "" && !st.MayFill; !s.Fixed {
		// The server keeps the meaning of what is prepared now, and not of what is
		// prepared of the same text later.
		s.reads = !readsOneWay(text)
		s.meaning, err = s.now(ctx)
	}
	return s, err
}

// Refresh plans the text again when what was known of the tables has changed.
func (s *Prepared) Refresh(ctx context.Context, args int) error {
	if args != s.NumInput { // database/sql sees to it, others may not
		return fmt.Errorf("leafsql: the statement takes %d arguments, got %d", s.NumInput, args)
	}
	p := s.p
	if p.planned != p.Changes {
		p.replan()
	}
	schema := p.tables.Schema.Load()
	if s.Fixed || schema == s.schema && s.plans == p.plans && !p.opaque && s.Statement.expires.IsZero() {
		return nil
	}
	same := false
	if !p.DBUnknown || !session.MayReadCounts(s.Text) || s.Statement.positional() { // else asking would change what it stores
		var err error
		if same, err = s.sameMeaning(ctx); err != nil {
			return err
		}
	}
	if !same { // it means what it meant when it was prepared
		if slices.ContainsFunc(s.Statement.Plan.Inserts, func(in insert.Insert) bool { return in.Zero }) {
			return s.changed("sql_mode decides whether the 0 that it writes is a key")
		}
		return s.keepsPlace()
	}
	st, err := p.Statement(ctx, s.Text)
	if err != nil {
		return err
	}
	s.Statement, s.schema, s.plans = st, schema, p.plans
	return nil
}

// now is what the text would mean if it was prepared now. What is not known of that is
// asked for.
func (s *Prepared) now(ctx context.Context) (m meaning, err error) {
	if err = s.p.KnowDatabase(ctx, s.Text); err == nil && s.reads {
		err = s.p.KnowSettings(ctx, s.Text)
		m.reading = s.p.Reading
	}
	m.db = s.p.DB
	return m, err
}

// sameMeaning says whether the text still means what it did when it was prepared.
func (s *Prepared) sameMeaning(ctx context.Context) (bool, error) {
	now, err := s.now(ctx)
	return now == s.meaning, err
}

// KeepsMeaning refuses a text that would not mean now what the user's meant when it was
// prepared.
func (s *Prepared) KeepsMeaning(ctx context.Context) error {
	if s.Fixed {
		return nil
	}
	if same, err := s.sameMeaning(ctx); same || err != nil {
		return err
	}
	return s.changed("these arguments need a text that was not prepared then")
}

// keepsPlace refuses a statement whose table a temporary one has come in the place of, or
// was in the place of: its rows need keys now and did not then, or the other way round.
func (s *Prepared) keepsPlace() error {
	place, filled := s.Statement.place, len(s.Statement.Plan.Inserts) > 0
	if filled {
		place = s.Statement.Plan.Inserts[0].Table.Name
	}
	t, is := s.p.temporary[place]
	if filled && !is || !filled && (is && t.known || !s.Statement.MayFill) {
		return nil
	}
	return s.changed("a temporary table has, or had, the name of its table")
}

func (s *Prepared) changed(why string) error {
	return &insert.Refusal{
		Of:     s.table,
		Reason: "the statement was prepared under another database in use, sql_mode or character set, and " + why,
		Fix:    "prepare it again after such a change",
	}
}

// readsOneWay says whether a text means the same under every sql_mode and every
// character set: it has no quotes but around plain literals, no operators that
// a mode gives another meaning, and no characters but ASCII.
func readsOneWay(text string) bool {
	return !strings.ContainsAny(text, "\"\\|![-") && !strings.Contains(text, "''") && !strings.Contains(strings.ToLower(text), "not") &&
		!strings.ContainsFunc(text, func(r rune) bool { return r >= utf8.RuneSelf })
}
