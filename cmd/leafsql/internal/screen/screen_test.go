package screen

import (
	"bytes"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestTable(t *testing.T) {
	rows := [][]string{{"orders", "12,001", "a"}, {"订单", "7", "a description that is much too long for a narrow terminal"}}
	names := []string{"TAG", "NEXT", "DESCRIPTION"}
	for width, want := range map[int]string{
		0: "TAG       NEXT  DESCRIPTION\n" +
			"orders  12,001  a\n" +
			"订单         7  a description that is much too long for a narrow terminal\n",
		40: "TAG       NEXT  DESCRIPTION\n" +
			"orders  12,001  a\n" +
			"订单         7  a description that is m…\n",
	} {
		var out bytes.Buffer
		(&Screen{Out: &out, Width: width}).Table(names, rows)
		if out.String() != want {
			t.Errorf("width %d:\n%s\nwant\n%s", width, &out, want)
		}
	}
}

func TestWrap(t *testing.T) {
	var out bytes.Buffer
	(&Screen{Out: &out, Width: 30}).Wrap(4, "A sentence that does not fit into one line of thirty.")
	if want := "    A sentence that does not\n    fit into one line of\n    thirty.\n"; out.String() != want {
		t.Errorf("%q, want %q", &out, want)
	}
}

func TestColoursOnlyWhereTheyShow(t *testing.T) {
	if s := (&Screen{}).Paint(Red, "x"); s != "x" {
		t.Errorf("%q", s)
	}
	if s := (&Screen{Colour: true}).Paint(Red, "x"); s != "\x1b[31mx\x1b[0m" {
		t.Errorf("%q", s)
	}
}

func TestCount(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", 12345678: "12,345,678", -1234: "-1,234"} {
		if got := Count(n); got != want {
			t.Errorf("%d: %s", n, got)
		}
	}
}

// TestProgress: nothing is shown of what is done within a second, and nothing stays.
func TestProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		s := &Screen{progress: &out}
		done := s.Progress(func() string { return "looking" })
		time.Sleep(quiet / 2)
		done()
		if out.Len() > 0 {
			t.Errorf("after half a second: %q", &out)
		}
		done = s.Progress(func() string { return "looking" })
		time.Sleep(2 * quiet)
		done()
		if !strings.Contains(out.String(), "looking") || !strings.HasSuffix(out.String(), "\r\x1b[K") {
			t.Errorf("after two: %q", &out)
		}
	})
}
