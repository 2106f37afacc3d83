package errprefix

import (
	"errors"
	"fmt"
	"io"
	"testing"
)

func TestTrimRemovesPrefixAndKeepsCause(t *testing.T) {
	ours := fmt.Errorf("leafsql: reading: %w", io.ErrUnexpectedEOF)
	for err, want := range map[error]string{ours: "reading: unexpected EOF", io.EOF: "EOF"} {
		got := Trim(err)
		if got.Error() != want || !errors.Is(got, err) {
			t.Errorf("Trim(%q) = %q, want %q that wraps it", err, got, want)
		}
	}
	if got := Trim(nil); got != nil {
		t.Errorf("Trim(nil) = %v, want nil", got)
	}
}
