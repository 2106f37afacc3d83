//go:build storm

package chaos

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// A ledger records the results of one writer's statements. Only one goroutine writes it.
type ledger struct {
	statements []statement
	errors     map[string]errorCount // by number
	pauses     pauseTimer
}

// A statement is an acknowledged statement. Its rows have consecutive n and ids.
type statement struct {
	rows  int
	n, id int64 // n and id of the first row
}

// An errorCount counts an error.
type errorCount struct {
	times int
	text  string // text of the first one
}

// recordLine records a line of a program. It returns the number of acknowledged rows, or the error in the line.
func (l *ledger) recordLine(line string) (rows int, err error) {
	if text, ok := strings.CutPrefix(line, "! "); ok {
		number, _, _ := strings.Cut(text, " ")
		if l.errors == nil {
			l.errors = make(map[string]errorCount)
		}
		l.errors[number] = errorCount{l.errors[number].times + 1, cmp.Or(l.errors[number].text, text)}
		return 0, errors.New(text)
	}
	var s statement
	if _, err := fmt.Sscan(line, &s.rows, &s.n, &s.id); err != nil {
		return 0, fmt.Errorf("%q: %w", line, err)
	}
	l.statements = append(l.statements, s)
	l.pauses.end()
	return s.rows, nil
}

// unexpected returns the recorded errors that a crash does not explain, such as a duplicate key or a refused
// statement.
func (l *ledger) unexpected() (texts []string) {
	for number, told := range l.errors {
		if n, err := strconv.Atoi(number); err != nil || n >= 1000 && (n < 2000 || n >= 3000) && !slices.Contains(crashErrors, n) {
			texts = append(texts, fmt.Sprintf("%d × %s", told.times, told.text))
		}
	}
	return texts
}

// crashErrors has the server errors that a crash explains: the server shuts down (1053), a connection is killed
// or lost (1317, 1927), or no ids were available in time (1205).
var crashErrors = []int{1053, 1205, 1317, 1927}

// A pauseTimer measures the longest time between two acknowledgements.
type pauseTimer struct {
	mu      sync.Mutex
	last    time.Time
	longest time.Duration
}

// skip begins a new pause without measuring the current one.
func (p *pauseTimer) skip() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last = time.Now()
}

// end ends the current pause and begins a new one.
func (p *pauseTimer) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if !p.last.IsZero() {
		p.longest = max(p.longest, now.Sub(p.last))
	}
	p.last = now
}
