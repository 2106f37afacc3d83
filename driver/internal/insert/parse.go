package insert

import (
	"encoding/binary"
	"math"
	"math/bits"
	"slices"
	"strings"
	"sync"
	"unsafe"

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
	first := read(text, settings, settings.flags(), lookup)
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

// flags are those that the settings tell, where sql_mode is known.
func (s Settings) flags() flags { return flags{s.NoBackslashEscapes, s.ANSIQuotes, false} }

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
	r := readers.Get().(*reader)
	r.text, r.settings, r.lookup = text, settings, lookup
	r.s = scanner(text, settings, f)
	err := r.statements()
	if r.s.Seen&lex.SeenVersion != 0 {
		r.missing |= MissingVersion
	}
	i := interpretation{f, r.plan(), r.missing, err, r.s.Seen}
	*r = reader{}
	readers.Put(r)
	return i
}

// readers are those that read nothing now, and are zero.
var readers = sync.Pool{New: func() any { return new(reader) }}

// scanner scans a text under flags, as the server that settings tell of does.
func scanner(text string, settings Settings, f flags) lex.Scanner {
	s := lex.Scanner{
		Text:               text,
		NoBackslashEscapes: f.noBackslashEscapes,
		ANSIQuotes:         f.ansiQuotes,
		Space:              spaceOf(settings.Charset),
		Dead:               f.dead,
		Version:            settings.Version,
	}
	switch {
	case settings.VersionKnown && settings.MariaDB:
		s.Flavour = lex.MariaDB
	case settings.VersionKnown:
		s.Flavour = lex.MySQL
	}
	return s
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

// ambiguous says whether a text could mean something else under other flags
// than it was read with.
func (r *interpretation) ambiguous(settings Settings) bool {
	if r.seen&(lex.SeenBackslash|lex.SeenDoubleQuote) != 0 && (!settings.SQLModeKnown || r.seen&lex.SeenSQLMode != 0) {
		return true
	}
	return r.seen&lex.SeenSixDigits != 0
}

// reconcile reads a text in every other way that it can be read, and returns
// the plan if they all agree.
func reconcile(first interpretation, settings Settings, lookup Lookup) (*Plan, Missing, error) {
	all := []interpretation{first}
	seen := first.seen
	for n := 0; len(all) > n; {
		n = len(all)
		for _, f := range otherFlags(first.flags, seen, settings) {
			if !slices.ContainsFunc(all, func(i interpretation) bool { return i.flags == f }) {
				r := read(first.plan.text, settings, f, lookup)
				seen |= r.seen
				all = append(all, r)
			}
		}
	}
	agree := true
	for i := range all[1:] {
		agree = agree && same(&first, &all[i+1])
	}
	switch {
	case agree && first.err != nil:
		return nil, 0, first.err
	case agree:
		return first.plan, 0, nil
	case seen&lex.SeenSQLMode != 0:
		return nil, 0, undecided(all, "the text sets sql_mode and reads differently under another one", "send the SET in a text of its own")
	case !settings.SQLModeKnown:
		return nil, MissingSQLMode, nil
	}
	return nil, 0, undecided(all, "a version comment of six digits means different things to MySQL servers", "write five digits, or no comment")
}

// otherFlags lists the flags under which what was seen may be read.
func otherFlags(f flags, seen lex.Seen, settings Settings) []flags {
	list := []flags{f}
	flip := func(change func(*flags)) {
		for _, f := range list {
			change(&f)
			list = append(list, f)
		}
	}
	if !settings.SQLModeKnown || seen&lex.SeenSQLMode != 0 {
		if seen&lex.SeenBackslash != 0 {
			flip(func(f *flags) { f.noBackslashEscapes = !f.noBackslashEscapes })
		}
		if seen&lex.SeenDoubleQuote != 0 {
			flip(func(f *flags) { f.ansiQuotes = !f.ansiQuotes })
		}
	}
	if seen&lex.SeenSixDigits != 0 {
		flip(func(f *flags) { f.dead = true })
	}
	return list
}

// undecided is the refusal of a text whose interpretations differ for good.
func undecided(all []interpretation, reason, fix string) error {
	for i := range all {
		r := &all[i]
		if r.err != nil {
			if refusal, ok := r.err.(*Refusal); ok {
				return &Refusal{refusal.DB, refusal.Table, reason, fix}
			}
			return r.err
		}
		if len(r.plan.Inserts) > 0 {
			return refuse(r.plan.Inserts[0].Table, reason, fix)
		}
	}
	return &Refusal{Reason: reason, Fix: fix}
}

// same says whether two interpretations come to the same.
func same(a, b *interpretation) bool {
	if a.missing != b.missing {
		return false
	}
	if a.err != nil || b.err != nil {
		ra, _ := a.err.(*Refusal)
		rb, _ := b.err.(*Refusal)
		return ra != nil && rb != nil && *ra == *rb
	}
	p, q := a.plan, b.plan
	if p.Use != q.Use || p.Unseen != q.Unseen || p.Charset != q.Charset || p.Cut != q.Cut || p.CutInput != q.CutInput || !slices.Equal(p.Changes, q.Changes) {
		return false
	}
	if len(p.Inserts) == 0 && len(q.Inserts) == 0 {
		return true
	}
	if len(p.Inserts) != len(q.Inserts) || p.NumInput != q.NumInput || p.Results != q.Results || len(p.edits) != len(q.edits) {
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

func (in *Insert) same(o *Insert) bool {
	if !slices.Equal(in.ArgKeys, o.ArgKeys) || (in.Staging == nil) != (o.Staging == nil) || in.Staging != nil && !in.Staging.same(o.Staging) ||
		(in.Evaluation == nil) != (o.Evaluation == nil) || in.Evaluation != nil && !in.Evaluation.same(o.Evaluation) {
		return false
	}
	return in.Table == o.Table && in.Statement == o.Statement && in.Rows == o.Rows && in.Lacking == o.Lacking && in.Floor == o.Floor && in.OwnKey == o.OwnKey &&
		in.Replace == o.Replace && in.Ignore == o.Ignore && in.Upsert == o.Upsert && in.Returning == o.Returning && in.Conditional == o.Conditional &&
		in.Marker == o.Marker && in.Late == o.Late && in.head == o.head && in.UpsertMarker == o.UpsertMarker && in.UserMarker == o.UserMarker && in.Positional == o.Positional && in.editSpan == o.editSpan
}

// hidesASCII says whether a text may have other tokens in another character
// set: in one of two bytes a character may end in a backslash or a backtick,
// in one of single bytes 0xA0 or 0xFF may be white space.
func hidesASCII(text string) bool {
	for i := 0; ; i++ {
		i += ascii(text[i:])
		if i >= len(text) {
			return false
		}
		c := text[i]
		if (c == 0xa0 || c == 0xff) && (i == 0 || text[i-1] < 0x80) {
			return true
		}
		if i+1 < len(text) && (text[i+1] == '\\' || text[i+1] == '`') {
			return true
		}
	}
}

// ascii returns the length of the ASCII text before the first other byte.
func ascii(s string) int {
	b := unsafe.Slice(unsafe.StringData(s), len(s))
	i := 0
	for ; i+8 <= len(b); i += 8 {
		if v := binary.LittleEndian.Uint64(b[i:]) & 0x8080808080808080; v != 0 {
			return i + bits.TrailingZeros64(v)/8
		}
	}
	for i < len(b) && b[i] < 0x80 {
		i++
	}
	return i
}

// spaceOf is the byte from 0x80 on that a character set of single bytes counts
// as white space, 0 for none.
func spaceOf(charset string) byte {
	switch charset {
	case "armscii8", "cp1250", "dec8", "geostd8", "greek", "hebrew", "latin1", "latin2", "latin5", "latin7":
		return 0xa0
	case "cp852", "cp866", "keybcs2":
		return 0xff
	}
	return 0
}

// twoBytes says whether a character set has characters whose second byte may
// be a backslash or a backtick.
func twoBytes(charset string) bool {
	switch charset {
	case "gbk", "gb18030", "big5", "sjis", "cp932":
		return true
	}
	return false
}

// parseInCharset is Parse for a text that hides ASCII in some character sets.
func parseInCharset(text string, settings Settings, lookup Lookup) (*Plan, Missing, error) {
	lower := strings.ToLower(text)
	mentions := func(words ...string) bool {
		for _, w := range words {
			if strings.Contains(lower, w) {
				return true
			}
		}
		return false
	}
	if !mentions("insert", "replace", "load", "execute", "prepare", "use") {
		return parse(text, settings, lookup)
	}
	if !settings.CharsetKnown {
		return nil, MissingCharset, nil
	}
	sets := strings.Contains(text, ";") && mentions("gbk", "gb18030", "big5", "sjis", "cp932")
	if !twoBytes(settings.Charset) && !sets {
		return parse(text, settings, lookup)
	}
	// What stands before the first such character is read alike by all; one
	// statement has its table there.
	var table *Table
	note := func(db, name string) (*Table, error) {
		t, err := lookup(db, name)
		if t != nil {
			table = t
		}
		return t, err
	}
	plan, missing, err := parse(text, settings, note)
	if _, refused := err.(*Refusal); missing != 0 || err != nil && !refused {
		return nil, missing, err
	}
	if table == nil && !strings.Contains(text, ";") {
		return plan, 0, err
	}
	r := &Refusal{Reason: "a character of its text may end in a backslash, as the character set " + settings.Charset + " has them", Fix: "connect with charset=utf8mb4, or pass the values as arguments"}
	if sets {
		r.Reason, r.Fix = "the text sets a character set and may read differently under another one", "send the SET in a text of its own"
	}
	if table != nil {
		r.DB, r.Table = table.DB, table.Name
	}
	return nil, 0, r
}
