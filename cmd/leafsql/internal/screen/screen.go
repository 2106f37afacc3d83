// Package screen writes the output of a command: aligned tables for people, JSON for programs and, on a
// terminal, a line with the progress.
//
//	s := screen.New(os.Stdout, os.Stderr)
//	s.Table([]string{"TAG", "NEXT ID"}, [][]string{{"orders", screen.FormatCount(12001)}})
//
// The output for people is Chinese if the screen has Texts. JSON is English. Errors of writing are recorded.
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

// A Screen writes the output of a command.
type Screen struct {
	Out   io.Writer
	Err   io.Writer
	Texts chinese.Texts // translations for Printf and the names of columns

	writeErr error     // the first error of writing to Out
	canClear bool      // Out is a terminal
	progress io.Writer // a terminal, or nil
}

// New returns a Screen that writes to out, with progress on errs if errs is a terminal.
func New(out, errs *os.File) *Screen {
	s := &Screen{Out: out, Err: errs, canClear: term.IsTerminal(int(out.Fd()))}
	if term.IsTerminal(int(errs.Fd())) && os.Getenv("TERM") != "dumb" {
		s.progress = errs
	}
	return s
}

// Printf translates a format and writes the text to Out.
func (s *Screen) Printf(format string, args ...any) {
	s.print(s.Texts.Sprintf(format, args...))
}

func (s *Screen) print(text string) {
	_, err := io.WriteString(s.Out, text)
	s.noteError(err)
}

func (s *Screen) noteError(err error) {
	if s.writeErr == nil {
		s.writeErr = err
	}
}

// WriteErr returns the first error of writing to Out. After an error the output is incomplete.
func (s *Screen) WriteErr() error { return s.writeErr }

// JSON writes a value for programs, indented.
func (s *Screen) JSON(v any) error {
	e := json.NewEncoder(s.Out)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	s.noteError(err)
	return err
}

// Table writes rows in aligned columns with their translated names.
func (s *Screen) Table(names []string, rows [][]string) {
	table := [][]string{make([]string, len(names))}
	for i, name := range names {
		table[0][i] = s.Texts.Text(name)
	}
	table = append(table, rows...)
	widths := make([]int, len(names))
	for _, row := range table {
		for i, cell := range row {
			widths[i] = max(widths[i], textWidth(cell))
		}
	}
	var text strings.Builder
	for _, row := range table {
		for i, cell := range row {
			text.WriteString(ReplaceControl(cell))
			if i < len(row)-1 {
				text.WriteString(strings.Repeat(" ", widths[i]-textWidth(cell)+2))
			}
		}
		text.WriteByte('\n')
	}
	s.print(text.String())
}

// textWidth returns the number of terminal columns that a text occupies: a Chinese character takes two.
func textWidth(text string) (n int) {
	for _, r := range text {
		switch k := width.LookupRune(r).Kind(); {
		case unicode.Is(unicode.Mn, r): // placed above the letter before it
		case k == width.EastAsianWide || k == width.EastAsianFullwidth:
			n += 2
		default:
			n++
		}
	}
	return n
}

// ReplaceControl replaces control characters, which a terminal would execute, by question marks: names in a
// database may have any characters.
func ReplaceControl(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return '?'
		}
		return r
	}, text)
}

// Clear starts a page: on a terminal it erases the screen.
func (s *Screen) Clear() {
	if s.canClear {
		s.Printf("\x1b[H\x1b[2J")
	}
}

// Unknown is the text of an unknown value in a table.
const Unknown = "-"

// FormatCount formats a number with thousands separators: 12,001.
func FormatCount(n int64) string {
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

// progressDelay is the time before progress is shown.
const progressDelay = time.Second

// Progress shows a text on the terminal, first after one second and then five times a second, until done
// is called. It calls say() from another goroutine to get the text. Without a terminal Progress shows nothing.
func (s *Screen) Progress(say func() string) (done func()) {
	if s.progress == nil {
		return func() {}
	}
	stop := make(chan struct{})
	var shown sync.WaitGroup
	shown.Go(func() {
		for wait := progressDelay; ; wait = progressDelay / 5 {
			select {
			case <-stop:
				if wait != progressDelay {
					fmt.Fprint(s.progress, "\r\x1b[K")
				}
				return
			case <-time.After(wait):
				fmt.Fprint(s.progress, "\r\x1b[K"+ReplaceControl(say()))
			}
		}
	})
	return sync.OnceFunc(func() {
		close(stop)
		shown.Wait()
	})
}
