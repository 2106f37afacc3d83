// Package chinese writes texts for people in Chinese where the reader asks for it. The English text is in the
// code and is the key of its translation. Codes, JSON, metrics, logs and errors are English everywhere:
// programs read them, and people search for them.
package chinese

import (
	"cmp"
	"fmt"
)

// Texts are Chinese formats, as package fmt takes them, by their English ones. Nil is English.
type Texts map[string]string

// Sprintf is fmt.Sprintf with the translation of an English format. One that has none stays as it is.
func (t Texts) Sprintf(english string, args ...any) string {
	format := cmp.Or(t[english], english)
	if len(args) == 0 {
		return format
	}
	return fmt.Sprintf(format, args...)
}
