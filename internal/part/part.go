// Package part puts one error of leafsql inside another one, so that the whole text has
// "leafsql: " once, at its beginning.
//
//	return fmt.Errorf("leafsql: taking worker id %d: %w", id, part.Of(err))
//
// Errors of others it leaves as they are.
package part

import "strings"

// Of is err without the "leafsql: " at its beginning. errors.Is and errors.As see err.
func Of(err error) error {
	if err == nil {
		return nil
	}
	if text := Text(err); text != err.Error() {
		return &part{text, err}
	}
	return err
}

// Text is what Of(err) says, for where no error is wanted.
func Text(err error) string { return strings.TrimPrefix(err.Error(), "leafsql: ") }

type part struct {
	text string
	err  error
}

func (p *part) Error() string { return p.text }
func (p *part) Unwrap() error { return p.err }

// Sentence is the shape of every message of leafsql: what was to be done, why it was not,
// and the way out, where there is one.
func Sentence(what, cause, way string) string {
	s := "leafsql: " + what + ": " + cause
	if way != "" {
		s += "; " + way
	}
	return s
}
