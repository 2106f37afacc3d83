package part

import (
	"errors"
	"fmt"
	"io"
	"testing"
)

func TestOf(t *testing.T) {
	ours := fmt.Errorf("leafsql: reading: %w", io.ErrUnexpectedEOF)
	for err, want := range map[error]string{ours: "reading: unexpected EOF", io.EOF: "EOF"} {
		got := Of(err)
		if got.Error() != want || !errors.Is(got, err) {
			t.Errorf("of %q is %q", err, got)
		}
	}
	if Of(nil) != nil {
		t.Error("nil became an error")
	}
}
