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
)

// A Prepared is a query that was prepared. Its meaning was fixed when it was prepared, but its plan is made again
// after changes of the tables. Like its Planner, it is not safe for concurrent use.
type Prepared struct {
	Text      string
	Statement *Statement
	NumInput  int  // number of placeholders in the user's query
	Fixed     bool // it writes no table that a rule includes: its execution never changes

	p                 *Planner
	table             insert.TableName // table that it fills; zero if there is none
	dependsOnSettings bool             // the meaning depends on sql_mode or the character set
	meaning           textMeaning      // meaning at the time of preparing

	plans *plancache.Cache[string, *Statement] // plans of the Planner when Statement was planned; other facts about tables have other plans
}

// A textMeaning is the state that the meaning of a query depends on: the database in use and, if the session's settings
// can change the meaning, these settings.
type textMeaning struct{ db, settings string }

// Prepare returns the Prepared of a query that is about to be prepared, and records its current
// meaning. st is its statement. The result is valid even if err is not nil. The error comes from
// LoadDatabase or LoadSettings.
func (p *Planner) Prepare(ctx context.Context, st *Statement, text string) (s Prepared, err error) {
	s = Prepared{Text: text, Statement: st, NumInput: st.Plan.NumInput, p: p, plans: p.plans}
	if len(st.Plan.Inserts) > 0 {
		s.table = st.Plan.Inserts[0].Table.Name
	}
	if s.Fixed = !st.Prepares(); !s.Fixed {
		// The server keeps the meaning of the query that is prepared now. If the same query is prepared
		// later, it may have another meaning.
		s.dependsOnSettings = !isUnambiguous(text)
		s.meaning, err = s.currentMeaning(ctx)
	}
	return s, err
}

// Refresh plans the query again if the facts about tables have changed. args is the number of
// arguments; a wrong number is an error. The error may also be an *insert.Refusal.
func (s *Prepared) Refresh(ctx context.Context, args int) error {
	if args != s.NumInput { // database/sql checks this, other callers may not
		return fmt.Errorf("leafsql: the statement takes %d arguments, got %d", s.NumInput, args)
	}
	p := s.p
	if p.plannedRevision != p.Revision {
		p.selectPlans()
	}
	if s.Fixed || s.plans == p.plans && p.schema == p.tables.Schema.Load() && !p.opaqueRan && s.Statement.expires.IsZero() {
		return nil
	}
	same := false
	if !p.DBUnknown || !session.MayReadCounts(s.Text) || s.Statement.isPositional() { // in other cases the look-up would change a count that the query stores
		var err error
		if same, err = s.hasSameMeaning(ctx); err != nil {
			return err
		}
	}
	if !same { // the prepared query keeps its original meaning
		if slices.ContainsFunc(s.Statement.Plan.Inserts, func(in insert.Insert) bool { return in.WritesZero }) {
			return s.refuseChanged("sql_mode decides whether the written 0 is a key")
		}
		return s.checkSameTable()
	}
	st, err := p.Statement(ctx, s.Text)
	if err != nil {
		return err
	}
	s.Statement, s.plans = st, p.plans
	return nil
}

// currentMeaning returns the meaning that the query would have if it were prepared now. Unknown settings are read
// from the session.
func (s *Prepared) currentMeaning(ctx context.Context) (m textMeaning, err error) {
	if err = s.p.LoadDatabase(ctx, s.Text); err == nil && s.dependsOnSettings {
		err = s.p.LoadSettings(ctx, s.Text)
		m.settings = s.p.SettingsText
	}
	m.db = s.p.DB
	return m, err
}

// hasSameMeaning reports whether the query still has the meaning from the time of preparing.
func (s *Prepared) hasSameMeaning(ctx context.Context) (bool, error) {
	now, err := s.currentMeaning(ctx)
	return now == s.meaning, err
}

// CheckMeaning returns an *insert.Refusal if a query that is prepared now would have another meaning than the
// user's prepared query. Other errors are the same as from Prepare.
func (s *Prepared) CheckMeaning(ctx context.Context) error {
	if s.Fixed {
		return nil
	}
	if same, err := s.hasSameMeaning(ctx); same || err != nil {
		return err
	}
	return s.refuseChanged("these arguments need another query than the one that was prepared")
}

// checkSameTable refuses a statement if a temporary table now hides its table, or no longer hides it. Rows
// that needed no keys then need them, or rows that needed keys no longer need them.
func (s *Prepared) checkSameTable() error {
	place, filled := s.Statement.mayFill, len(s.Statement.Plan.Inserts) > 0
	if filled {
		place = s.Statement.Plan.Inserts[0].Table.Name
	}
	t, is := s.p.temporary[place]
	if filled && !is || !filled && (is && t.known || place.Table == "") {
		return nil
	}
	return s.refuseChanged("a temporary table has or had the name of its table")
}

func (s *Prepared) refuseChanged(why string) error {
	return &insert.Refusal{
		Table:  s.table,
		Reason: "the statement was prepared under another database in use, sql_mode or character set, and " + why,
		Fix:    "prepare it again after such a change",
	}
}

// isUnambiguous reports whether a query has the same meaning in every sql_mode and character set: quotes
// enclose plain literals only, no operator depends on a mode, and all characters are ASCII.
func isUnambiguous(text string) bool {
	return !strings.ContainsAny(text, "\"\\|![-") && !strings.Contains(text, "''") && !strings.Contains(strings.ToLower(text), "not") &&
		!strings.ContainsFunc(text, func(r rune) bool { return r >= utf8.RuneSelf })
}
