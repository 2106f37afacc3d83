package main

import (
	"bytes"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// A line is the content of a row of the screen for a period.
type line struct {
	row      int
	spans    []span
	from, to time.Duration // to is 0 if the line stays
}

// A span is text in one style: the number of an escape sequence, or 0.
type span struct {
	text  string
	style int
}

// A terminal interprets the output of a program: text, colors, and the movements to draw lines again.
type terminal struct {
	rows  [][]span // the screen
	row   int      // cursor
	style int
	rest  []byte // incomplete end of the output

	shown map[int]line // lines of the screen at the last snapshot, by row
	last  time.Duration
	lines []line // earlier contents
}

// interval is the shortest time between two snapshots: bars that move faster would make the picture large.
const interval = 300 * time.Millisecond

var escape = regexp.MustCompile(`^\x1b\[(\d*)([AKm])`)

// write interprets output that the program wrote at this time.
func (t *terminal) write(now time.Duration, output []byte) {
	if now-t.last >= interval {
		t.snapshot(t.last)
		t.last = now
	}
	output = append(t.rest, output...)
	for len(output) > 0 {
		if !utf8.FullRune(output) || output[0] == '\x1b' && !escape.Match(output) {
			break
		}
		if m := escape.FindSubmatch(output); m != nil {
			n, _ := strconv.Atoi(string(m[1]))
			switch m[2][0] {
			case 'A':
				t.row = max(0, t.row-n)
			case 'm':
				t.style = n
			}
			output = output[len(m[0]):]
			continue
		}
		for len(t.rows) <= t.row {
			t.rows = append(t.rows, nil)
		}
		r, size := utf8.DecodeRune(output)
		output = output[size:]
		switch r {
		case '\r':
			if !bytes.HasPrefix(output, []byte("\n")) {
				t.rows[t.row] = nil // programs write whole lines again
			}
		case '\n':
			t.row++
		default:
			t.add(r)
		}
	}
	t.rest = bytes.Clone(output)
}

// add appends a character to the cursor's row.
func (t *terminal) add(r rune) {
	row := t.rows[t.row]
	if n := len(row); n > 0 && row[n-1].style == t.style {
		row[n-1].text += string(r)
		return
	}
	t.rows[t.row] = append(row, span{string(r), t.style})
}

// snapshot records the rows that have changed.
func (t *terminal) snapshot(now time.Duration) {
	if t.shown == nil {
		t.shown = map[int]line{}
	}
	for i, spans := range t.rows {
		old, ok := t.shown[i]
		if plain(old.spans) == plain(spans) {
			continue
		}
		if ok {
			old.to = now
			t.lines = append(t.lines, old)
		}
		t.shown[i] = line{row: i, spans: append([]span(nil), spans...), from: now}
	}
}

// plain returns a row's text, without the styles.
func plain(spans []span) string {
	var text strings.Builder
	for _, s := range spans {
		text.WriteString(s.text)
	}
	return text.String()
}

// finish returns all lines, without those that script writes itself.
func (t *terminal) finish(now time.Duration) []line {
	t.snapshot(now)
	for i := range t.rows {
		if l, ok := t.shown[i]; ok {
			t.lines = append(t.lines, l)
		}
	}
	return t.lines
}
