package insert

import (
	"encoding/binary"
	"math"
	"math/bits"
	"strings"
	"sync"
	"unsafe"

	"github.com/leafsql/leafsql/driver/internal/lex"
)

// Parse plans a text. Where the text means something else under other settings of the
// session, and those are not known, there is no plan: unknown says that the session
// has to be asked first. The error is a *Refusal, or what a function of schema
// returned. An error in the SQL is none of Parse's concern: what no server would run
// is planned as nothing to do.
func Parse(text string, settings Settings, schema Schema) (plan *Plan, unknown bool, err error) {
	if len(text) > math.MaxInt32 {
		return &Plan{text: text}, false, nil // longer than a packet can be
	}
	r := readers.Get().(*reader)
	r.text, r.settings, r.schema = text, settings, schema
	r.s = scanner(text, settings)
	err = r.statements()
	plan, unknown = r.plan(), r.unknown
	if r.s.Seen&^seenHere != 0 || otherBytes(text) < len(text) {
		unknown, err = r.decide(plan, unknown, err)
	}
	*r = reader{}
	readers.Put(r)
	if unknown || err != nil {
		plan = nil
	}
	return plan, unknown, err
}

// readers are those that read nothing now, and are zero.
var readers = sync.Pool{New: func() any { return new(reader) }}

// scanner scans a text as the session that settings tell of does.
func scanner(text string, settings Settings) lex.Scanner {
	return lex.Scanner{
		Text: text, NoBackslashEscapes: settings.NoBackslashEscapes, ANSIQuotes: settings.ANSIQuotes,
		MariaDB: settings.MariaDB, Version: settings.Version,
	}
}

// decide looks whether a text may mean something else than was read: whether its
// session has to be asked first, or the text is refused.
func (r *reader) decide(p *Plan, unknown bool, err error) (bool, error) {
	seen, odd := r.s.Seen, otherBytes(r.text)
	first := odd // from where on it may be read in another way
	if seen&(lex.SeenBackslash|lex.SeenDoubleQuote) != 0 {
		first = min(first, strings.IndexAny(r.text, "\\\""))
	}
	if seen&lex.SeenSixDigits != 0 {
		first = min(first, strings.Index(r.text, "/*!"))
	}
	refusal, refused := err.(*Refusal)
	switch {
	case err != nil && !refused, err == nil && r.decided <= first && strings.IndexByte(r.text[first:], ';') < 0:
		return unknown, err
	case !r.settings.SessionKnown:
		return true, nil
	}
	reason, fix := "", "send the SET in a text of its own"
	switch {
	case seen&lex.SeenSixDigits != 0:
		reason, fix = "a version comment of six digits means different things to MySQL servers", "write five digits, or no comment"
	case r.setsMode && seen&(lex.SeenBackslash|lex.SeenDoubleQuote) != 0:
		reason = "the text sets sql_mode and reads differently under another one"
	case odd == len(r.text):
	case mentions(r.settings.Charset, unsafeCharsets...):
		reason = "in the client's character set " + r.settings.Charset + " a byte of the text may be white space, or a part of a character, so that the end of a string is not certain"
		fix = "connect with charset=utf8mb4, or pass the values as arguments"
	case r.Session && mentions(r.text, unsafeCharsets...):
		reason = "the text sets a character set and may read differently under another one"
	}
	switch {
	case reason == "":
		return unknown, err
	case refused:
		return false, &Refusal{DB: refusal.DB, Table: refusal.Table, Reason: reason, Fix: fix}
	case len(p.Inserts) > 0:
		return false, refuse(p.Inserts[0].Table, reason, fix)
	}
	return false, &Refusal{Reason: reason, Fix: fix}
}

// mentions says whether a text holds one of some words in lower case, in any case.
func mentions(text string, words ...string) bool {
	text = strings.ToLower(text)
	for _, w := range words {
		if strings.Contains(text, w) {
			return true
		}
	}
	return false
}

// A planOfOne is a plan with room for what most plans of one INSERT hold: one allocation.
type planOfOne struct {
	Plan
	inserts [1]Insert
	edits   [2]edit
	texts   [1]string
}

// preallocate makes the plan once it is known that it will hold an INSERT.
func (r *reader) preallocate() {
	if r.edits == nil {
		p := &planOfOne{}
		r.spare = &p.Plan
		r.Inserts, r.edits, r.texts = p.inserts[:0], p.edits[:0], p.texts[:0]
	}
}

func (r *reader) plan() *Plan {
	plan := r.spare
	if plan == nil {
		plan = &Plan{}
	}
	plan.text = r.text
	r.NumInput = r.params
	if r.Cut > 0 {
		plan.findings = findings{Cut: r.Cut, CutInput: r.CutInput, NumInput: r.NumInput}
		return plan
	}
	if r.Results != 1 {
		for i := range r.Inserts {
			r.Inserts[i].OwnMarker = false
		}
	}
	r.Runs = r.Runs && r.schema.Temporary != nil
	plan.findings, plan.size = r.findings, r.fixedSize(r.text)
	return plan
}

// otherBytes is where a text may begin to have other tokens in another character set,
// its length for nowhere: in one of two bytes a character may end in a backslash or a
// backtick, in one of single bytes 0xA0 or 0xFF may be white space.
func otherBytes(text string) int {
	for i := 0; ; i++ {
		i += ascii(text[i:])
		if i >= len(text) {
			return len(text)
		}
		c := text[i]
		if (c == 0xa0 || c == 0xff) && (i == 0 || text[i-1] < 0x80) {
			return i
		}
		if i+1 < len(text) && (text[i+1] == '\\' || text[i+1] == '`') {
			return i
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

// unsafeCharsets are the character sets in which such bytes have another meaning. (A
// client's is none of those whose characters all have several bytes.)
var unsafeCharsets = []string{
	"gbk", "gb18030", "big5", "sjis", "cp932",
	"armscii8", "cp1250", "dec8", "geostd8", "greek", "hebrew", "latin1", "latin2", "latin5", "latin7", "cp852", "cp866", "keybcs2",
}
