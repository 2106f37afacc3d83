package screen

import (
	"bytes"
	"testing"
	"testing/synctest"
	"time"
)

func TestTableAlignsColumns(t *testing.T) {
	var out bytes.Buffer
	(&Screen{Out: &out}).Table([]string{"TAG", "NEXT"}, [][]string{{"or\tde\x1brs", FormatCount(12001)}, {"a", FormatCount(-123456)}})
	want := "TAG       NEXT\n" +
		"or?de?rs  12,001\n" +
		"a         -123,456\n"
	if out.String() != want {
		t.Errorf("table =\n%swant\n%s", &out, want)
	}
}

func TestProgressIsShownAfterASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		s := &Screen{progress: &out}
		done := s.Progress(func() string { return "1 of 3" })
		time.Sleep(progressDelay - 1)
		done()
		if out.Len() > 0 {
			t.Errorf("output within a second = %q, want none", &out)
		}
		done = s.Progress(func() string { return "2 of 3" })
		time.Sleep(progressDelay + 1)
		done()
		if out.String() != "\r\x1b[K2 of 3\r\x1b[K" {
			t.Errorf("output = %q, want the progress once, and then an empty line", &out)
		}
	})
}
