package insert

import (
	"math/bits"
	"strings"
	"unsafe"

	"github.com/leafsql/leafsql/driver/internal/lex"
)

// tricky says whether a text may have other tokens in another character set: in
// one of two bytes a character may end in a backslash or a backtick, in one of
// single bytes 0xA0 or 0xFF may be white space.
func tricky(text string) bool {
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
		v := uint64(b[i]) | uint64(b[i+1])<<8 | uint64(b[i+2])<<16 | uint64(b[i+3])<<24 |
			uint64(b[i+4])<<32 | uint64(b[i+5])<<40 | uint64(b[i+6])<<48 | uint64(b[i+7])<<56
		if v &= 0x8080808080808080; v != 0 {
			return i + bits.TrailingZeros64(v)/8
		}
	}
	for i < len(b) && b[i] < 0x80 {
		i++
	}
	return i
}

// parseBytes is Parse for a tricky text.
func parseBytes(text string, mode Mode, lookup Lookup) (*Plan, Need, error) {
	lower := strings.ToLower(text)
	matters := func(words ...string) bool {
		for _, w := range words {
			if strings.Contains(lower, w) {
				return true
			}
		}
		return false
	}
	if !matters("insert", "replace", "load", "execute", "prepare", "use") {
		return parse(text, mode, lookup)
	}
	if !mode.CharsetKnown {
		return nil, NeedCharset, nil
	}
	plan, need, err := parse(text, mode, lookup)
	if !strings.Contains(text, ";") || !matters("names", "charset", "character") {
		return plan, need, err
	}
	if need != 0 {
		return nil, need, nil
	}
	readings := []reading{asReading(plan, need, err)}
	for mode.Charset = lex.UTF8; mode.Charset <= lex.SJIS; mode.Charset++ {
		r := asReading(parse(text, mode, lookup))
		if readings = append(readings, r); !same(&readings[0], &r) {
			return nil, 0, undecided(readings,
				"the text sets a character set and may read differently under another one",
				"send the SET in a text of its own")
		}
	}
	return plan, need, err
}

func asReading(plan *Plan, need Need, err error) reading {
	if plan == nil {
		plan = &Plan{}
	}
	return reading{plan: plan, need: need, err: err}
}
