package insert

import (
	"encoding/binary"
	"math/bits"
	"strings"
	"unsafe"
)

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
