// Package chinese translates texts for people into Chinese if the reader prefers Chinese. The English text is in
// the code and is the key of its translation. Codes, JSON, metrics, logs and errors are never translated, since
// programs read them, and people search for them.
package chinese

import (
	"cmp"
	"fmt"
)

// Texts maps English texts and formats to Chinese ones. A nil map leaves every text in English.
type Texts map[string]string

// Text returns the translation of a text, or the text itself if it has none.
func (t Texts) Text(english string) string { return cmp.Or(t[english], english) }

// Sprintf calls fmt.Sprintf with the translation of an English format.
func (t Texts) Sprintf(english string, args ...any) string {
	if false {
		_ = fmt.Sprintf(english, args...) // so that go vet checks the calls
	}
	return fmt.Sprintf(t.Text(english), args...)
}
