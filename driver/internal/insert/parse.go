package insert

import (
	"math"

	"github.com/leafsql/leafsql/driver/internal/lex"
)

// Parse plans a text. Where the text reads differently under settings that are
// not known, it returns no plan and what to ask for. The error is a *Refusal,
// or what lookup returned. An error in the SQL is none of Parse's concern: what
// no server would run is planned as nothing to do.
func Parse(text string, settings Settings, lookup Lookup) (*Plan, Missing, error) {
	if len(text) > math.MaxInt32 {
		return &Plan{text: text}, 0, nil // longer than a packet can be
	}
	if hidesASCII(text) {
		return parseInCharset(text, settings, lookup)
	}
	return parse(text, settings, lookup)
}

// parse is Parse of a text that every character set cuts into the same tokens.
func parse(text string, settings Settings, lookup Lookup) (*Plan, Missing, error) {
	first := read(text, settings, flags{settings.NoBackslashEscapes, settings.ANSIQuotes, false}, lookup)
	if first.missing != 0 {
		return nil, first.missing, nil
	}
	if first.ambiguous(settings) {
		return reconcile(first, settings, lookup)
	}
	if first.err != nil {
		return nil, 0, first.err
	}
	return first.plan, 0, nil
}

// flags are what a scanner is told to take for granted.
type flags struct {
	noBackslashEscapes, ansiQuotes bool
	dead                           bool // version comments of six digits are no code
}

// An interpretation is what a text means under flags.
type interpretation struct {
	flags   flags
	plan    *Plan
	missing Missing
	err     error
	seen    lex.Seen
}

// read reads a text under flags.
func read(text string, settings Settings, f flags, lookup Lookup) interpretation {
	r := reader{text: text, settings: settings, lookup: lookup}
	r.s = lex.Scanner{
		Text:               text,
		NoBackslashEscapes: f.noBackslashEscapes,
		ANSIQuotes:         f.ansiQuotes,
		Space:              spaceOf(settings.Charset),
		Dead:               f.dead,
		Version:            settings.Version,
	}
	if settings.VersionKnown {
		r.s.Flavour = lex.MySQL
		if settings.MariaDB {
			r.s.Flavour = lex.MariaDB
		}
	}
	err := r.statements()
	if r.s.Seen&lex.SeenVersion != 0 {
		r.missing |= MissingVersion
	}
	return interpretation{f, r.plan(), r.missing, err, r.s.Seen}
}

// A roomyPlan is a plan with what most plans of one INSERT hold, in one piece.
type roomyPlan struct {
	Plan
	inserts [1]Insert
	edits   [2]edit
	texts   [1]string
}

// room makes the plan, once it is known to hold something.
func (r *reader) room() {
	if r.edits == nil {
		p := &roomyPlan{}
		r.roomy = &p.Plan
		r.inserts, r.edits, r.texts = p.inserts[:0], p.edits[:0], p.texts[:0]
	}
}

func (r *reader) plan() *Plan {
	plan := r.roomy
	if plan == nil {
		plan = &Plan{}
	}
	plan.text = r.text
	plan.NumInput = r.params
	if r.cut > 0 {
		plan.Cut, plan.CutInput = r.cut, r.cutInput
		return plan
	}
	plan.Inserts = r.inserts
	plan.Results = r.results
	plan.Use = r.db
	plan.Changes = r.changes
	plan.Unseen = r.unseen
	plan.Charset = r.charset
	plan.edits = r.edits
	plan.texts = r.texts
	return plan
}

// statements reads all statements of the text.
func (r *reader) statements() error {
	r.next()
	for r.tok.Kind != lex.EOF && r.tok.Kind != lex.Bad && !r.invalid && r.cut == 0 {
		if r.tok.Kind == ';' {
			r.s.Seen &^= lex.SeenComment
			r.next()
			continue
		}
		r.rows = false
		r.began = start{r.tok.Pos, r.prevEnd, r.params}
		err := r.statement()
		switch {
		case err == errCut:
			r.cutAt(r.began.prevEnd, r.began.params)
		case err != nil:
			return err
		case len(r.inserts) > 0 && r.inserts[len(r.inserts)-1].Stage != nil:
			r.isolate()
		}
		r.s.Seen &^= lex.SeenComment
		r.results++
	}
	if r.s.Seen&lex.SeenComment != 0 {
		r.results++ // nothing but a comment answers too
	}
	for r.tok.Kind != lex.EOF { // placeholders count even in what is invalid
		r.next()
	}
	return nil
}

// isolate cuts the text so that a staged statement has a text of its own.
func (r *reader) isolate() {
	if r.results > 0 {
		r.cutAt(r.began.prevEnd, r.began.params)
		return
	}
	end, params := r.tok.Pos, r.params
	for r.tok.Kind == ';' {
		r.next()
	}
	if r.tok.Kind != lex.EOF && r.tok.Kind != lex.Bad {
		r.cutAt(end+1, params)
	}
}

func (r *reader) cutAt(pos, params int) { r.cut, r.cutInput = pos, params }
