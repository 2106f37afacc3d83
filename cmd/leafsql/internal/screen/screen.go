// Package screen writes the output of a command: aligned tables for people, JSON for programs and, on a
// terminal, a line with the progress.
//
//	s := screen.New(os.Stdout, os.Stderr)
//	s.Table([]string{"TAG", "NEXT ID"}, [][]string{{"orders", screen.FormatCount(12001)}}, "NEXT ID")
//
// On a terminal, texts and tables are wrapped at its width, and have colours. Elsewhere lines are not wrapped, since programs
// such as grep read them.
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

	"github.com/leafsql/leafsql/internal/chinese"
)

// A Screen writes the output of a command.
type Screen struct {
	Out   io.Writer
	Err   io.Writer
	Texts chinese.Texts // translations for Printf and the names of columns

	Width    func() int // returns the number of columns of Out; nil if Out is not a terminal
	ErrWidth func() int // the same for Err
	Colours  bool       // Out displays colours
	ForJSON  bool       // texts become part of JSON, so numbers have no separators

	writeErr error     // the first error of writing to Out
	progress io.Writer // a terminal, or nil
}

// New returns a Screen that writes to out, with progress on errs if errs is a terminal. The environment variable
// NO_COLOR switches colours off.
func New(out, errs *os.File) *Screen {
	s := &Screen{Out: out, Err: errs, Width: widthOf(out), ErrWidth: widthOf(errs)}
	s.Colours = s.Width != nil && hasColours(os.Getenv)
	if s.ErrWidth != nil && os.Getenv("TERM") != "dumb" {
		s.progress = errs
	}
	return s
}

// hasColours reports whether a terminal displays colours and its user wants them.
func hasColours(getenv func(string) string) bool {
	return getenv("TERM") != "dumb" && getenv("NO_COLOR") == ""
}

// Widths of a terminal in columns: one that does not report its width, and the minimum for which lines are wrapped.
const (
	defaultWidth = 80
	minWidth     = 20
)

// widthOf returns a function that returns the width of a terminal, or nil for another file.
func widthOf(f *os.File) func() int {
	if !term.IsTerminal(int(f.Fd())) {
		return nil
	}
	return func() int {
		width, _, err := term.GetSize(int(f.Fd()))
		if err != nil || width <= 0 {
			return defaultWidth
		}
		return max(width, minWidth)
	}
}

// Sprintf translates a format and formats it. Integers get thousands separators, except for JSON.
func (s *Screen) Sprintf(format string, args ...any) string {
	if s.ForJSON {
		return s.Texts.Sprintf(format, args...)
	}
	separated := make([]any, len(args))
	for i, arg := range args {
		switch n := arg.(type) {
		case int:
			arg = count(n)
		case int64:
			arg = count(n)
		}
		separated[i] = arg
	}
	return s.Texts.Sprintf(format, separated...)
}

// A count is a number that is formatted with thousands separators.
type count int64

// Format implements fmt.Formatter.
func (n count) Format(f fmt.State, _ rune) { io.WriteString(f, FormatCount(int64(n))) }

// Printf writes the text of Sprintf to Out.
func (s *Screen) Printf(format string, args ...any) { s.Write([]byte(s.Sprintf(format, args...))) }

// Write writes text to Out, and wraps its lines on a terminal.
func (s *Screen) Write(text []byte) (int, error) {
	if s.Width == nil {
		return len(text), s.print(string(text))
	}
	return len(text), s.print(wrapText(string(text), s.Width()))
}

// PrintSource writes a program's text to Out, without wrapping it.
func (s *Screen) PrintSource(text string) { s.print(text) }

// PrintErr writes an error to Err.
func (s *Screen) PrintErr(err error) {
	text := err.Error()
	if s.ErrWidth != nil {
		text = wrapText(text, s.ErrWidth())
	}
	fmt.Fprintln(s.Err, text)
}

// PrintSQL writes statements and comments to Out, and indents their lines by as many spaces. On a terminal, statements
// are wrapped outside of quotes. Comments and lines in quotes stay as they are, so that the text can be copied.
func (s *Screen) PrintSQL(indent int, sql string) {
	spaces := strings.Repeat(" ", indent)
	before := "" // the lines before
	for line := range strings.SplitSeq(sql, "\n") {
		if !outsideQuotes(before) {
			before += line + "\n"
			s.print(line + "\n")
			continue
		}
		lines := []string{line}
		if s.Width != nil && !strings.HasPrefix(line, "-- ") && outsideQuotes(before+line) {
			lines = wrapLine(line, s.Width()-indent-2, "", func(text string) bool { return outsideQuotes(before + text) })
		}
		before += line + "\n"
		s.print(spaces + strings.Join(lines, "\n  "+spaces) + "\n")
	}
}

// A Colour is a parameter of the control sequence that selects the appearance of text.
type Colour string

// Colours of a terminal, which a user can configure.
const (
	Bold    Colour = "1"
	Red     Colour = "31"
	Yellow  Colour = "33"
	Magenta Colour = "35"
	Cyan    Colour = "36"
)

// PrintLabel writes a line that begins with a coloured label.
func (s *Screen) PrintLabel(c Colour, label, rest string) {
	line := label + rest
	if s.Width != nil {
		line = strings.Join(wrapLine(line, s.Width()-2, "", anywhere), "\n  ")
	}
	if after, ok := strings.CutPrefix(line, label); ok {
		line = s.paint(c, label) + after
	}
	s.print(line + "\n")
}

// PrintStep writes a line of a numbered list.
func (s *Screen) PrintStep(number int, text string) {
	lines := []string{text}
	if s.Width != nil {
		lines = wrapLine(text, s.Width()-5, "", anywhere)
	}
	s.print(fmt.Sprintf("%3d. %s\n", number, strings.Join(lines, "\n     ")))
}

func (s *Screen) paint(c Colour, text string) string {
	if !s.Colours {
		return text
	}
	return "\x1b[" + string(c) + "m" + text + "\x1b[0m"
}

func (s *Screen) print(text string) error {
	_, err := io.WriteString(s.Out, text)
	s.noteError(err)
	return err
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
	if s.Width != nil {
		s.print("\x1b[H\x1b[2J")
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
