package process

import (
	"bytes"
	"log/slog"
	"math"
	"strings"
	"testing"
)

// TestTooFewOpenFilesAreAWarning: too few open files are a warning if a number of connections was requested, but not if the
// default is lowered.
func TestTooFewOpenFilesAreAWarning(t *testing.T) {
	for _, c := range []struct {
		usual int
		want  string
	}{{100, "level=WARN"}, {math.MaxInt, "level=INFO"}} {
		var log bytes.Buffer
		if n := LimitConnections(math.MaxInt, c.usual, 2, slog.New(slog.NewTextHandler(&log, nil))); n == math.MaxInt || !strings.Contains(log.String(), c.want) {
			t.Errorf("LimitConnections() with the usual number %d = %d, log %q, want a limit and %q", c.usual, n, &log, c.want)
		}
	}
}
