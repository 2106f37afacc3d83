// Package errprefix makes sure that an error message contains the prefix "leafsql: " only once, at its
// beginning, if the error wraps another error of leafsql.
//
//	return fmt.Errorf("leafsql: acquire worker id %d: %w", id, errprefix.Trim(err))
//
// Errors of other packages are returned unchanged.
package errprefix

import "strings"

// Trim returns err without the "leafsql: " at its beginning. The result unwraps to err.
func Trim(err error) error {
	if err == nil {
		return nil
	}
	if text := TrimText(err); text != err.Error() {
		return &trimmed{text, err}
	}
	return err
}

// TrimText returns the text of Trim(err).
func TrimText(err error) string { return strings.TrimPrefix(err.Error(), "leafsql: ") }

type trimmed struct {
	text string
	err  error
}

func (t *trimmed) Error() string { return t.text }
func (t *trimmed) Unwrap() error { return t.err }

// Format returns a message of leafsql: what failed, the cause, and a hint if there is one.
func Format(what, cause, hint string) string {
	s := "leafsql: " + what + ": " + cause
	if hint != "" {
		s += "; " + hint
	}
	return s
}
