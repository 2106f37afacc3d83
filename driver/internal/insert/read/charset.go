package read

import (
	"encoding/binary"
	"math/bits"
	"unsafe"
)

// This file finds queries that may have other tokens in another character set than in UTF-8.

// indexAmbiguous returns the first offset from which the query may have other tokens in another character
// set, or len(text) if there is none. In a two-byte character set a character may end in a backslash or a
// backtick. In a single-byte character set 0xA0 or 0xFF may be white space.
func indexAmbiguous(text string) int {
	for i := 0; ; i++ {
		i += asciiPrefix(text[i:])
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

// asciiPrefix returns the length of the text in front of the first byte that is not ASCII.
func asciiPrefix(s string) int {
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

// unsafeCharsets are the character sets in which the bytes that indexAmbiguous finds have another meaning.
// Clients cannot use character sets without single-byte characters, such as utf16.
var unsafeCharsets = []string{
	"gbk", "gb18030", "big5", "sjis", "cp932",
	"armscii8", "cp1250", "dec8", "geostd8", "greek", "hebrew", "latin1", "latin2", "latin5", "latin7", "cp852", "cp866", "keybcs2",
}
