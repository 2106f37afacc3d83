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

// A ledger is what one writer was told of its statements. One goroutine writes it.
type ledger struct {
	statements []statement
	errors     map[string]told // by number
	pauses     pauses
}

// A statement has consecutive n and ids.
type statement struct {
	rows  int
	n, id int64 // of its first row
}

// Told is how often an error was told, and what it said first.
type told struct {
	times int
	text  string
}

// note takes a line of a program, and returns the number of rows that it acknowledges, or the error that it tells.
func (l *ledger) note(line string) (rows int, err error) {
	if text, ok := strings.CutPrefix(line, "! "); ok {
		number, _, _ := strings.Cut(text, " ")
		if l.errors == nil {
			l.errors = make(map[string]told)
		}
		l.errors[number] = told{l.errors[number].times + 1, cmp.Or(l.errors[number].text, text)}
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

// unexpected are the errors among those told which no crash explains: with a duplicate in a key, for one, or with a statement
// that is refused.
func (l *ledger) unexpected() (texts []string) {
	for number, told := range l.errors {
		if n, err := strconv.Atoi(number); err != nil || n >= 1000 && (n < 2000 || n >= 3000) && !slices.Contains(crashes, n) {
			texts = append(texts, fmt.Sprintf("%d × %s", told.times, told.text))
		}
	}
	return texts
}

// crashes are the server's errors that a crash explains: it ends (1053), a connection to it is killed or lost (1317, 1927), or
// ids could not be had in time (1205).
var crashes = []int{1053, 1205, 1317, 1927}

// Pauses are the times between acknowledgements.
type pauses struct {
	mu      sync.Mutex
	last    time.Time
	longest time.Duration
}

// skip lets a pause begin now.
func (p *pauses) skip() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last = time.Now()
}

// end ends a pause.
func (p *pauses) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if !p.last.IsZero() {
		p.longest = max(p.longest, now.Sub(p.last))
	}
	p.last = now
}
