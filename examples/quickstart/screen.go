package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/term"
)

// A screen prints for people: with colours and moving bars in a terminal, and plain lines otherwise.
type screen struct {
	out      io.Writer
	terminal bool // the cursor can be moved
	colour   bool
	unicode  bool
	drawn    int // lines of bars above the cursor
	fifths   int // fifths of the bars' length that were printed as lines
}

func newScreen(out io.Writer) *screen {
	s := &screen{out: out}
	if file, ok := out.(*os.File); ok && term.IsTerminal(int(file.Fd())) && os.Getenv("TERM") != "dumb" {
		width, _, err := term.GetSize(int(file.Fd()))
		s.terminal = err != nil || width >= 80
		s.colour = os.Getenv("NO_COLOR") == ""
	}
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if locale := strings.ToUpper(os.Getenv(name)); locale != "" {
			s.unicode = strings.Contains(locale, "UTF-8") || strings.Contains(locale, "UTF8")
			break
		}
	}
	return s
}

func (s *screen) printf(format string, args ...any) {
	s.drawn = 0
	fmt.Fprintf(s.out, format, args...)
}

func (s *screen) paint(code, text string) string {
	if !s.colour {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

func (s *screen) bold(text string) string { return s.paint("1", text) }
func (s *screen) dim(text string) string  { return s.paint("2", text) }

func (s *screen) heading(text string) { s.printf("\n%s\n", s.bold(text)) }

// printSuccess and printFailure print an outcome.
func (s *screen) printSuccess(text string) { s.printOutcome("32", "✓", "ok", text) }
func (s *screen) printFailure(text string) { s.printOutcome("31", "✗", "FAILS", text) }

func (s *screen) printOutcome(code, sign, word, text string) {
	if !s.unicode {
		sign = word
	}
	s.printf("   %s %s\n", s.paint(code, sign), text)
}

func (s *screen) plusMinus() string {
	if !s.unicode {
		return "+-"
	}
	return "±"
}

func (s *screen) dash() string {
	if !s.unicode {
		return "-"
	}
	return "—"
}

// A bar is the progress of one driver.
type bar struct {
	label string
	done  int
	total int
	took  time.Duration
}

func (b *bar) rate() float64 {
	if b.took <= 0 {
		return 0
	}
	return float64(b.done) / b.took.Seconds()
}

const barWidth = 30

// draw shows the bars: in place in a terminal, as lines otherwise.
func (s *screen) draw(bars []*bar) {
	if !s.terminal {
		s.drawLine(bars)
		return
	}
	var text strings.Builder
	if s.drawn > 0 {
		fmt.Fprintf(&text, "\x1b[%dA", s.drawn)
	}
	full, empty := "█", "░"
	if !s.unicode {
		full, empty = "#", "."
	}
	for _, b := range bars {
		n := b.done * barWidth / max(1, b.total)
		fmt.Fprintf(&text, "\r   %-10s %s%s %8s orders %8s rows/s\x1b[K\n", b.label,
			s.paint("32", strings.Repeat(full, n)), s.dim(strings.Repeat(empty, barWidth-n)), formatThousands(b.done), formatThousands(int(b.rate())))
	}
	io.WriteString(s.out, text.String())
	s.drawn = len(bars)
}

// drawLine prints a line when all bars have reached the next fifth.
func (s *screen) drawLine(bars []*bar) {
	fifths := 5
	for _, b := range bars {
		fifths = min(fifths, b.done*5/max(1, b.total))
	}
	if fifths <= s.fifths {
		return
	}
	s.fifths = fifths
	line := fmt.Sprintf("   %3d %%", fifths*20)
	for _, b := range bars {
		line += fmt.Sprintf("   %s %8s rows/s", b.label, formatThousands(int(b.rate())))
	}
	fmt.Fprintln(s.out, line)
}

// formatThousands returns 1234567 as 1,234,567.
func formatThousands(n int) string {
	digits := fmt.Sprint(n)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}
