// Package part wraps one error of leafsql in another one, so that the whole text has
// "leafsql: " only once, at its beginning.
//
//	return fmt.Errorf("leafsql: taking worker id %d: %w", id, part.Of(err))
//
// Errors of other packages are returned unchanged.
package part

import "strings"

// Of returns err without the "leafsql: " at its beginning. The result unwraps to err.
func Of(err error) error {
	if err == nil {
		return nil
	}
	if text := Text(err); text != err.Error() {
		return &part{text, err}
	}
	return err
}

// Text returns the text of Of(err).
func Text(err error) string { return strings.TrimPrefix(err.Error(), "leafsql: ") }

type part struct {
	text string
	err  error
}

func (p *part) Error() string { return p.text }
func (p *part) Unwrap() error { return p.err }

// Sentence formats a message of leafsql: what failed, the cause, and a hint if there is one.
func Sentence(what, cause, way string) string {
	s := "leafsql: " + what + ": " + cause
	if way != "" {
		s += "; " + way
	}
	return s
}
