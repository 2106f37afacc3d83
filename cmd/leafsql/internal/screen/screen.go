// Package screen writes for people: aligned tables, wrapped text and, on a
// terminal, colours and a line of progress.
//
//	s := screen.New(os.Stdout, os.Stderr)
//	s.Table([]string{"TAG", "NEXT ID"}, [][]string{{"orders", screen.Count(12001)}})
//
// Without a terminal, or with NO_COLOR in the environment, there are no colours,
// and nothing is cut to a width.
package screen

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"

	"golang.org/x/term"
	"golang.org/x/text/width"
)

// A Screen is where a command's output goes.
type Screen struct {
	Out    io.Writer
	Width  int  // columns of Out, 0 where it is no terminal
	Colour bool // Out shows colours

	progress io.Writer // a terminal, or nil
}

// New looks at what out and errs are.
func New(out, errs *os.File) *Screen {
	s := &Screen{Out: out}
	if terminal(out) {
		s.Width, _, _ = term.GetSize(int(out.Fd()))
		s.Colour = os.Getenv("NO_COLOR") == ""
	}
	if terminal(errs) {
		s.progress = errs
	}
	return s
}

func terminal(f *os.File) bool {
	return term.IsTerminal(int(f.Fd())) && os.Getenv("TERM") != "dumb"
}

// Printf writes to Out.
func (s *Screen) Printf(format string, args ...any) { fmt.Fprintf(s.Out, format, args...) }

// A Style is how a text looks where there are colours.
type Style string

const (
	Bold   Style = "1"
	Dim    Style = "2"
	Red    Style = "31"
	Green  Style = "32"
	Yellow Style = "33"
)

// Paint gives text a style.
func (s *Screen) Paint(style Style, text string) string {
	if !s.Colour || text == "" {
		return text
	}
	return "\x1b[" + string(style) + "m" + text + "\x1b[0m"
}

// Wrap writes text in lines that fit, each after indent spaces.
func (s *Screen) Wrap(indent int, text string) {
	room := s.Width - indent
	line := ""
	flush := func() {
		if line != "" {
			s.Printf("%*s%s\n", indent, "", line)
		}
		line = ""
	}
	for _, word := range strings.Fields(text) {
		if s.Width > 0 && line != "" && columns(line)+1+columns(word) > max(room, 20) {
			flush()
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	flush()
}

// Table writes rows in aligned columns under their names, numbers to the right.
// The longest column is cut where a row would not fit the terminal.
func (s *Screen) Table(names []string, rows [][]string) {
	widths := make([]int, len(names))
	right := make([]bool, len(names))
	for c, name := range names {
		widths[c], right[c] = columns(name), len(rows) > 0
		for _, row := range rows {
			widths[c] = max(widths[c], columns(row[c]))
			right[c] = right[c] && numeric(row[c])
		}
	}
	total := 2 * (len(names) - 1)
	longest := 0
	for c, w := range widths {
		total += w
		if w > widths[longest] {
			longest = c
		}
	}
	if s.Width > 0 && total > s.Width {
		widths[longest] = max(widths[longest]-(total-s.Width), 8)
	}
	write := func(row []string, style Style) {
		var b strings.Builder
		for c, cell := range row {
			cell = cut(cell, widths[c])
			pad := strings.Repeat(" ", widths[c]-columns(cell))
			if right[c] {
				cell = pad + cell
			} else if c < len(row)-1 {
				cell += pad
			}
			if c > 0 {
				b.WriteString("  ")
			}
			b.WriteString(cell)
		}
		s.Printf("%s\n", s.Paint(style, strings.TrimRight(b.String(), " ")))
	}
	write(names, Bold)
	for _, row := range rows {
		write(row, "")
	}
}

func numeric(cell string) bool {
	return cell == "" || cell == Unknown || unicode.IsDigit(rune(cell[0])) || len(cell) > 1 && cell[0] == '-' && unicode.IsDigit(rune(cell[1]))
}

// Unknown stands in a table for what is not known.
const Unknown = "-"

// columns is how many columns of a terminal a text takes: Chinese takes two each.
func columns(text string) int {
	n := 0
	for _, r := range text {
		switch k := width.LookupRune(r).Kind(); {
		case unicode.Is(unicode.Mn, r):
		case k == width.EastAsianWide, k == width.EastAsianFullwidth:
			n += 2
		default:
			n++
		}
	}
	return n
}

// cut shortens a text to some columns.
func cut(text string, room int) string {
	if columns(text) <= room {
		return text
	}
	kept := ""
	for _, r := range text {
		if columns(kept+string(r)) > room-1 {
			break
		}
		kept += string(r)
	}
	return kept + "…"
}

// Count writes a number with its thousands apart: 12,001.
func Count(n int64) string {
	digits := strconv.FormatInt(n, 10)
	sign := ""
	if n < 0 {
		sign, digits = "-", digits[1:]
	}
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return sign + digits
}

// quiet is how long something may take before its progress is shown.
const quiet = time.Second

// Progress shows on the terminal what say tells, from a second on, until the
// function that it returns is called. Without a terminal it shows nothing.
func (s *Screen) Progress(say func() string) (done func()) {
	if s.progress == nil {
		return func() {}
	}
	stop := make(chan struct{})
	var shown sync.WaitGroup
	shown.Go(func() {
		wait := quiet
		for {
			select {
			case <-stop:
				if wait != quiet {
					fmt.Fprint(s.progress, "\r\x1b[K")
				}
				return
			case <-time.After(wait):
			}
			wait = quiet / 5
			room := 79
			if s.Width > 0 {
				room = s.Width - 1
			}
			fmt.Fprint(s.progress, "\r\x1b[K"+cut(say(), room))
		}
	})
	return sync.OnceFunc(func() {
		close(stop)
		shown.Wait()
	})
}
