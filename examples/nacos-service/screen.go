package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"
)

// A screen prints for people: with colours and a running clock in a terminal,
// and plain lines otherwise.
type screen struct {
	mu       sync.Mutex
	out      io.Writer
	terminal bool
	colour   bool
	unicode  bool
}

func newScreen(out io.Writer) *screen {
	s := &screen{out: out}
	if file, ok := out.(*os.File); ok && term.IsTerminal(int(file.Fd())) && os.Getenv("TERM") != "dumb" {
		s.terminal, s.colour = true, os.Getenv("NO_COLOR") == ""
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
	s.mu.Lock()
	defer s.mu.Unlock()
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

// printLines prints a paragraph, line by line.
func (s *screen) printLines(lines ...string) {
	for _, l := range lines {
		s.printf("%s\n", strings.TrimRight("   "+l, " "))
	}
}

// wrap breaks a text between its words into lines for printLines.
func wrap(text string) (lines []string) {
	const width = 77
	line := ""
	for word := range strings.FieldsSeq(text) {
		if line != "" && len([]rune(line+" "+word)) > width {
			lines, line = append(lines, line), ""
		}
		line = strings.TrimSpace(line + " " + word)
	}
	return append(lines, line)
}

// printSuccess prints an outcome.
func (s *screen) printSuccess(text string) {
	sign := "✓"
	if !s.unicode {
		sign = "ok"
	}
	s.printf("   %s %s\n", s.paint("32", sign), text)
}

// showDuring shows that f takes long: seconds that count up in a terminal, and a
// line now and then otherwise. now may return a description of the progress.
func (s *screen) showDuring(what string, now func() string, f func() error) error {
	every, form, last := 15*time.Second, "   ... %[2]s\n", ""
	if s.terminal {
		every, form, last = 200*time.Millisecond, "\r   %s %s\x1b[K", "\r\x1b[K"
	} else {
		s.printLines(what + " ...")
	}
	began := time.Now()
	over := make(chan struct{})
	var shown sync.WaitGroup
	shown.Go(func() {
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case <-over:
				s.printf("%s", last)
				return
			case <-tick.C:
				s.printf(form, what, s.dim(fmt.Sprintf("%.0f s  %s", time.Since(began).Seconds(), now())))
			}
		}
	})
	defer shown.Wait()
	defer close(over)
	return f()
}
