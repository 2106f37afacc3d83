// Package chinese writes texts for people in Chinese where the reader asks for it. The English text is in the
// code and is the key of its translation. Codes, JSON, metrics, logs and errors are English everywhere:
// programs read them, and people search for them.
package chinese

import (
	"cmp"
	"fmt"
)

// Texts are Chinese texts and formats by their English ones. Nil is English.
type Texts map[string]string

// Text is the translation of a text. One that has none stays as it is.
func (t Texts) Text(english string) string { return cmp.Or(t[english], english) }

// Sprintf is fmt.Sprintf with the translation of an English format.
func (t Texts) Sprintf(english string, args ...any) string {
	if false {
		_ = fmt.Sprintf(english, args...) // so that go vet checks the calls
	}
	return fmt.Sprintf(t.Text(english), args...)
}
