// Package screen writes what a command has to say: aligned tables for people, JSON for
// programs and, on a terminal, a line of progress.
//
//	s := screen.New(os.Stdout, os.Stderr)
//	s.Table([]string{"TAG", "NEXT ID"}, [][]string{{"orders", screen.Count(12001)}})
//
// People read it in Chinese if the screen has Texts. JSON is English.
package screen

import (
	"encoding/json"
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

	"github.com/leafsql/leafsql/internal/chinese"
)

// A Screen is where a command's output goes.
type Screen struct {
	Out   io.Writer
	Err   io.Writer
	Texts chinese.Texts // of Printf and of the names of columns

	failed   error     // the first error of writing to Out
	clear    bool      // Out is a terminal
	progress io.Writer // a terminal, or nil
}

// New looks whether errs, to which progress goes, is a terminal.
func New(out, errs *os.File) *Screen {
	s := &Screen{Out: out, Err: errs, clear: term.IsTerminal(int(out.Fd()))}
	if term.IsTerminal(int(errs.Fd())) && os.Getenv("TERM") != "dumb" {
		s.progress = errs
	}
	return s
}

// Printf writes to Out.
func (s *Screen) Printf(format string, args ...any) {
	s.print(s.Texts.Sprintf(format, args...))
}

func (s *Screen) print(text string) {
	_, err := io.WriteString(s.Out, text)
	s.note(err)
}

func (s *Screen) note(err error) {
	if s.failed == nil {
		s.failed = err
	}
}

// Failed is the first error of writing to Out: what was to be read there is not all there.
func (s *Screen) Failed() error { return s.failed }

// JSON writes a value for programs.
func (s *Screen) JSON(v any) error {
	e := json.NewEncoder(s.Out)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	s.note(err)
	return err
}

// Table writes rows in aligned columns under their names.
func (s *Screen) Table(names []string, rows [][]string) {
	table := [][]string{make([]string, len(names))}
	for i, name := range names {
		table[0][i] = s.Texts.Text(name)
	}
	table = append(table, rows...)
	widths := make([]int, len(names))
	for _, row := range table {
		for i, cell := range row {
			widths[i] = max(widths[i], columns(cell))
		}
	}
	var text strings.Builder
	for _, row := range table {
		for i, cell := range row {
			text.WriteString(Plain(cell))
			if i < len(row)-1 {
				text.WriteString(strings.Repeat(" ", widths[i]-columns(cell)+2))
			}
		}
		text.WriteByte('\n')
	}
	s.print(text.String())
}

// columns is how many columns of a terminal a text takes: a Chinese letter takes two.
func columns(text string) (n int) {
	for _, r := range text {
		switch k := width.LookupRune(r).Kind(); {
		case unicode.Is(unicode.Mn, r): // stands above the letter before it
		case k == width.EastAsianWide || k == width.EastAsianFullwidth:
			n += 2
		default:
			n++
		}
	}
	return n
}

// Plain takes from a text what a terminal would obey: names in a database may hold any
// letter.
func Plain(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return '?'
		}
		return r
	}, text)
}

// Clear begins a page: on a terminal it takes the place of what was there.
func (s *Screen) Clear() {
	if s.clear {
		s.Printf("\x1b[H\x1b[2J")
	}
}

// Unknown stands in a table for what is not known.
const Unknown = "-"

// Count writes a number with its thousands apart: 12,001.
func Count(n int64) string {
	digits := strconv.FormatInt(n, 10)
	first := 0
	if n < 0 {
		first = 1
	}
	for i := len(digits) - 3; i > first; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// quiet is how long something may take before its progress is shown.
const quiet = time.Second

// Progress shows on the terminal what say tells, from a second on, until the function
// that it returns is called. Without a terminal it shows nothing.
func (s *Screen) Progress(say func() string) (done func()) {
	if s.progress == nil {
		return func() {}
	}
	stop := make(chan struct{})
	var shown sync.WaitGroup
	shown.Go(func() {
		for wait := quiet; ; wait = quiet / 5 {
			select {
			case <-stop:
				if wait != quiet {
					fmt.Fprint(s.progress, "\r\x1b[K")
				}
				return
			case <-time.After(wait):
				fmt.Fprint(s.progress, "\r\x1b[K"+Plain(say()))
			}
		}
	})
	return sync.OnceFunc(func() {
		close(stop)
		shown.Wait()
	})
}
