package read

import (
	"encoding/binary"
	"math/bits"
	"unsafe"
)

// In which character sets a text may have other tokens than were read.

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
