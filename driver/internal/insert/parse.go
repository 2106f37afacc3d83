package insert

import (
	"math"

	"github.com/leafsql/leafsql/driver/internal/lex"
)

// Parse plans a text. Where the text reads differently under settings that
// mode does not know, it returns no plan and what to ask for. The error is a
// *Refusal, or what lookup returned. An error in the SQL is none of Parse's
// concern: what no server would run is planned as nothing to do.
func Parse(text string, mode Mode, lookup Lookup) (*Plan, Need, error) {
	if len(text) > math.MaxInt32 {
		return &Plan{text: text}, 0, nil // longer than a packet can be
	}
	if tricky(text) {
		return parseBytes(text, mode, lookup)
	}
	return parse(text, mode, lookup)
}

// parse is Parse under one character set.
func parse(text string, mode Mode, lookup Lookup) (*Plan, Need, error) {
	r := read(text, mode, defaultView(mode), lookup)
	if r.need != 0 {
		return nil, r.need, nil
	}
	if r.ambiguous(mode) {
		return reconcile(r, mode, lookup)
	}
	if r.err != nil {
		return nil, 0, r.err
	}
	return r.plan, 0, nil
}

// A view is one way to read a text.
type view struct {
	noBackslashEscapes, ansiQuotes, dead bool
}

func defaultView(mode Mode) view {
	return view{mode.NoBackslashEscapes, mode.ANSIQuotes, false}
}

// A reading is what a text means under a view.
type reading struct {
	view view
	plan *Plan
	need Need
	err  error
	seen lex.Seen
}

func read(text string, mode Mode, v view, lookup Lookup) reading {
	p := parser{text: text, mode: mode, lookup: lookup}
	p.s = lex.Scanner{
		Text:               text,
		NoBackslashEscapes: v.noBackslashEscapes,
		ANSIQuotes:         v.ansiQuotes,
		Charset:            mode.Charset,
		Dead:               v.dead,
		Version:            mode.Version,
	}
	if mode.VersionKnown {
		p.s.Flavour = lex.MySQL
		if mode.MariaDB {
			p.s.Flavour = lex.MariaDB
		}
	}
	err := p.statements()
	return reading{v, p.plan(), p.need, err, p.s.Seen}
}

// A usualPlan is a plan with what most plans of one INSERT hold, in one piece.
type usualPlan struct {
	Plan
	inserts [1]Insert
	edits   [2]edit
	texts   [1]string
}

// room makes the plan, once it is known to hold something.
func (p *parser) room() {
	if p.made == nil {
		u := &usualPlan{}
		p.usual = &u.Plan
		p.inserts, p.made, p.texts = u.inserts[:0], u.edits[:0], u.texts[:0]
	}
}

func (p *parser) plan() *Plan {
	plan := p.usual
	if plan == nil {
		plan = &Plan{}
	}
	for i := range p.inserts {
		if in := &p.inserts[i]; in.FromEnd >= p.counted {
			in.FromEnd = p.results - in.FromEnd
		} else {
			in.FromEnd = 0
		}
	}
	plan.Inserts = p.inserts
	plan.Results = p.results
	plan.NumInput = p.params
	plan.Use = p.db
	plan.UseUnknown = p.useUnknown
	plan.text = p.text
	plan.edits = p.made
	plan.texts = p.texts
	return plan
}

const seenQuotes = lex.SeenBackslash | lex.SeenDoubleQuote

// ambiguous says whether another view could read something else.
func (r *reading) ambiguous(mode Mode) bool {
	if r.seen&seenQuotes != 0 && (!mode.SQLModeKnown || r.seen&lex.SeenSQLMode != 0) {
		return true
	}
	return r.seen&(lex.SeenVersion|lex.SeenSixDigits) != 0
}

// idle says whether a reading leaves the text as it is.
func (r *reading) idle() bool {
	return r.err == nil && r.need == 0 && len(r.plan.Inserts) == 0
}

// reconcile reads a text in every other way that it can be read, and returns
// the plan if they all agree.
func reconcile(first reading, mode Mode, lookup Lookup) (*Plan, Need, error) {
	views := func(seen lex.Seen) []view {
		vs := []view{first.view}
		flip := func(when lex.Seen, change func(*view)) {
			if seen&when == 0 {
				return
			}
			for _, v := range vs {
				change(&v)
				vs = append(vs, v)
			}
		}
		if !mode.SQLModeKnown || seen&lex.SeenSQLMode != 0 {
			flip(lex.SeenBackslash, func(v *view) { v.noBackslashEscapes = !v.noBackslashEscapes })
			flip(lex.SeenDoubleQuote, func(v *view) { v.ansiQuotes = !v.ansiQuotes })
		}
		flip(lex.SeenVersion|lex.SeenSixDigits, func(v *view) { v.dead = true })
		return vs
	}
	readings := []reading{first}
	seen := first.seen
	for n := 0; n < len(readings); {
		n = len(readings)
		for _, v := range views(seen) {
			if !has(readings, v) {
				r := read(first.plan.text, mode, v, lookup)
				seen |= r.seen
				readings = append(readings, r)
			}
		}
	}

	var need Need
	for i := range readings {
		for j := range readings[:i] {
			a, b := &readings[i], &readings[j]
			if same(a, b) {
				continue
			}
			if a.view.dead != b.view.dead {
				need |= NeedVersion
			}
			if a.view.noBackslashEscapes != b.view.noBackslashEscapes || a.view.ansiQuotes != b.view.ansiQuotes {
				need |= NeedSQLMode
			}
		}
	}
	if seen&lex.SeenVersions != 0 {
		for i := range readings {
			if !readings[i].idle() {
				need |= NeedVersion
			}
		}
	}
	switch {
	case need != 0:
	case first.err != nil:
		return nil, 0, first.err
	default:
		return first.plan, 0, nil
	}
	if need&NeedSQLMode != 0 && seen&lex.SeenSQLMode != 0 {
		return nil, 0, undecided(readings,
			"the text sets sql_mode and reads differently under another one",
			"send the SET in a text of its own")
	}
	if need&NeedVersion != 0 && mode.VersionKnown {
		return nil, 0, undecided(readings,
			"a version comment of six digits means different things to MySQL servers",
			"write five digits, or no comment")
	}
	return nil, need, nil
}

func has(readings []reading, v view) bool {
	for i := range readings {
		if readings[i].view == v {
			return true
		}
	}
	return false
}

// undecided is the refusal of a text whose readings differ for good.
func undecided(readings []reading, reason, way string) error {
	for i := range readings {
		r := &readings[i]
		if r.err != nil {
			if refusal, ok := r.err.(*Refusal); ok {
				return &Refusal{refusal.DB, refusal.Table, reason, way}
			}
			return r.err
		}
		if len(r.plan.Inserts) > 0 {
			return refuse(r.plan.Inserts[0].Table, reason, way)
		}
	}
	return &Refusal{Reason: reason, Way: way}
}

// same says whether two readings come to the same.
func same(a, b *reading) bool {
	if a.need != b.need || a.plan.Use != b.plan.Use || a.plan.UseUnknown != b.plan.UseUnknown {
		return false
	}
	if a.err != nil || b.err != nil {
		ra, _ := a.err.(*Refusal)
		rb, _ := b.err.(*Refusal)
		return ra != nil && rb != nil && *ra == *rb
	}
	p, q := a.plan, b.plan
	if len(p.Inserts) == 0 && len(q.Inserts) == 0 {
		return true
	}
	if len(p.Inserts) != len(q.Inserts) || p.NumInput != q.NumInput || p.Results != q.Results ||
		len(p.edits) != len(q.edits) {
		return false
	}
	for i := range p.edits {
		x, y := p.edits[i], q.edits[i]
		if x != y || x.kind <= filled && p.texts[x.ref] != q.texts[y.ref] {
			return false
		}
	}
	for i := range p.Inserts {
		if !p.Inserts[i].same(&q.Inserts[i]) {
			return false
		}
	}
	return true
}

func (a *Insert) same(b *Insert) bool {
	if a.Table != b.Table || a.Statement != b.Statement || a.FromEnd != b.FromEnd || a.Rows != b.Rows || a.Holes != b.Holes ||
		a.Replace != b.Replace || a.Ignore != b.Ignore || a.Upsert != b.Upsert || a.Returning != b.Returning ||
		a.Mark != b.Mark || a.UpsertMark != b.UpsertMark || a.UserMark != b.UserMark || a.Wraps != b.Wraps ||
		len(a.ArgKeys) != len(b.ArgKeys) || a.edits != b.edits {
		return false
	}
	for i := range a.ArgKeys {
		if a.ArgKeys[i] != b.ArgKeys[i] {
			return false
		}
	}
	if a.Select == nil || b.Select == nil {
		return a.Select == b.Select
	}
	return *a.Select == *b.Select
}
