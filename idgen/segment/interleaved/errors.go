package interleaved

import (
	"errors"
	"fmt"
	"slices"

	"github.com/leafsql/leafsql/idgen"
	"github.com/leafsql/leafsql/idgen/segment"
	"github.com/leafsql/leafsql/idgen/segment/internal/tagrow"
	"github.com/leafsql/leafsql/internal/part"
)

// mismatchError is the RowError of members that do not belong together as they are named.
// Its table is that of one of them.
type mismatchError struct{ segment.RowError }

func (e *mismatchError) Unwrap() error { return &e.RowError }

func isMismatch(err error) bool {
	_, ok := errors.AsType[*mismatchError](err)
	return ok
}

// aloneError is the RowError of a member that others can draw from alone.
type aloneError struct{ segment.RowError }

func (e *aloneError) Unwrap() error { return &e.RowError }

func isAlone(err error) bool {
	_, ok := errors.AsType[*aloneError](err)
	return ok
}

// lacksRow reports whether a member has no row for the tag, though it answers.
func lacksRow(err error) bool {
	_, unknown := errors.AsType[*segment.UnknownTagError](err)
	n, _ := tagrow.ServerError(err)
	return unknown || n == tagrow.ErrNoTable
}

// isAnswer reports whether err is what rows say, and no sign that a member is away.
func isAnswer(err error) bool {
	_, unknown := errors.AsType[*segment.UnknownTagError](err)
	_, row := errors.AsType[*segment.RowError](err)
	_, back := errors.AsType[*segment.RolledBackError](err)
	return unknown || row || back || errors.Is(err, idgen.ErrExhausted)
}

// allFailed is the error where no member gives ids. It is an answer only if all of them
// are.
func (s *Store) allFailed(tag string, errs []error) error {
	if !slices.ContainsFunc(errs, func(err error) bool { return !lacksRow(err) }) {
		return s.members[0].unknown(tag)
	}
	text := ""
	for k, err := range errs {
		if !isAnswer(err) {
			return fmt.Errorf("store %d of %d: %w%s", k+1, len(errs), part.Of(err), text)
		}
		text += fmt.Sprintf("; store %d: %v", k+1, part.Of(err))
	}
	return errs[0]
}
