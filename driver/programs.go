package driver

import (
	"cmp"
	"context"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/leafsql/leafsql/driver/internal/catalog"
	"github.com/leafsql/leafsql/driver/internal/insert"
)

// What stored programs, whose texts no statement shows, would tell of a statement
// that runs as several.

// A viewsLook is what was known at some time of all views.
type viewsLook struct {
	at      time.Time
	readsID bool
}

// viewsReadID says whether some view may read LAST_INSERT_ID(). It is asked when a
// statement needs it: MariaDB opens every view for it.
func (c *Connector) viewsReadID(ctx context.Context, s *schema) (bool, error) {
	s.mu.Lock()
	look := s.views
	s.mu.Unlock()
	if look == nil || time.Since(look.at) > refreshEvery {
		ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
		defer cancel()
		reads, err := c.catalog.ViewsReadID(ctx)
		if err != nil {
			return false, catalogError("the views", err)
		}
		look = &viewsLook{time.Now(), reads}
		s.mu.Lock()
		s.views = look
		s.mu.Unlock()
	}
	return look.readsID, nil
}

// programs refuses a statement that runs as several where a stored program that it
// runs would notice: one that calls ROW_COUNT() or the like, or one that reads or
// sets what the statement's other parts do row by row.
func (c *conn) programs(ctx context.Context, st *statement, in *insert.Insert, text string) (err error) {
	t := in.Table.Ref.(*table)
	acts := in.Stage != nil && (in.Stage.Acts || in.Stage.Variables) || in.Evaluation != nil && in.Evaluation.Variables
	if !acts && !t.programsCount || st.asked.Load() > time.Now().UnixMilli() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	databases := []string{t.name.DB, c.db}
	reached := func(routines []string, tables ...string) (texts []string) {
		if err == nil {
			texts, err = c.connector.catalog.Reached(ctx, databases, routines, tables)
		}
		return texts
	}
	reason, fix := "", "insert the rows one by one"
	if t.programsCount && slices.ContainsFunc(reached(catalog.Calls(text), append(catalog.Words(text), t.name.Table)...), catalog.Counts) {
		reason = "a stored function, trigger or view that it runs calls ROW_COUNT(), FOUND_ROWS() or the like, which would tell of leafsql's own statements, since this one runs as several"
		fix = "put the count into a user variable first, and read that in the program"
	}
	if acts && reason == "" {
		text, target := strings.ToLower(text), strings.ToLower(t.name.Table)
		rows, tail, _ := strings.Cut(text, "on duplicate key update")
		functions := strings.Join(reached(catalog.Calls(rows)), ";")
		later := strings.Join(append(reached(catalog.Calls(tail)), reached(nil, target)...), ";") // with each row of the copy
		if in.Stage != nil {
			reason = stagedApart(target, rows+";"+functions, functions, later+";"+tail, later)
		} else if name := common(found(variables, text), assigned(text+";"+functions+";"+later), found(variables, functions+";"+later)); name != "" {
			reason = "its keys and a stored function or trigger use the variable @" + name + ", and keys are evaluated first"
		}
	}
	switch {
	case err != nil:
		return catalogError("the stored programs", err)
	case reason != "":
		return &RefusedError{t.name.String(), "", reason, fix}
	}
	st.asked.Store(time.Now().Add(refreshEvery).UnixMilli())
	return nil
}

// stagedApart says what would be noticed where a select, with functions of these
// texts, is run to its end before the first row is copied, with programs of other
// texts; "" for nothing. Of variables the statement's own parts count as well.
func stagedApart(target, assigning, functions, reading, programs string) string {
	const first = ", and the select is run to its end before the first row is stored"
	if name := common(append(found(writes, programs), target), found(tables, functions)); name != "" {
		return "a stored function in its select uses " + name + first
	}
	if name := common(found(writes, functions), found(tables, programs)); name != "" {
		return "a stored function in its select writes " + name + ", which a trigger or the update list uses" + first
	}
	if name := common(assigned(assigning), found(variables, reading)); name != "" {
		return "its select sets the variable @" + name + ", which a trigger or the update list uses" + first
	}
	if name := common(assigned(reading), found(variables, assigning)); name != "" {
		return "its select uses the variable @" + name + ", which a trigger or the update list sets" + first
	}
	return ""
}

// Patterns of names in a text of lower case. The name is the last group that is
// not empty.
const aName = "[`\"']?([\\pL\\pN_$]+)[`\"']?"

var (
	writes    = regexp.MustCompile(`\b(?:key|for)\s+update\b|\b(?:(?:insert|replace)(?:\s+(?:ignore|low_priority|delayed|high_priority))*(?:\s+into)?|update|delete\s+from)\s+(?:\S+\s*\.\s*)?` + aName)                                         // tables that are written, and "" for words that write none
	tables    = regexp.MustCompile(`(?s)(?:\b(?:from|join|straight_join|into|table|(?:insert|replace|update)(?:\s+(?:ignore|low_priority|delayed|high_priority))*)\b|,)(?:[\s(]|/\*.*?\*/|(?:#|--)[^\n]*\n)*(?:` + aName + `\s*\.\s*)?` + aName) // where tables may stand
	assigns   = regexp.MustCompile(`@` + aName + `\s*:=|(?:\bset|\bdiagnostics|\d|,)\s*@` + aName + `\s*=`)                                                                                                                                      // variables that are set, and
	intoLists = regexp.MustCompile("\\binto\\s+[@\\pL\\pN_$.`\"']+(?:\\s*,\\s*[@\\pL\\pN_$.`\"']+)*")                                                                                                                                            // lists that have more of them
	variables = regexp.MustCompile(`@` + aName)
)

// found are the names that a pattern finds in a text.
func found(pattern *regexp.Regexp, text string) (names []string) {
	for _, m := range pattern.FindAllStringSubmatch(text, -1) {
		names = append(names, cmp.Or(m[len(m)-1], m[1]))
	}
	return names
}

// assigned are the variables that a text sets.
func assigned(text string) []string {
	names := found(assigns, text)
	for _, list := range intoLists.FindAllString(text, -1) {
		names = append(names, found(variables, list)...)
	}
	return names
}

// common is a name that is in all lists, "" for none.
func common(list []string, others ...[]string) string {
	for _, name := range list {
		if !slices.ContainsFunc(others, func(other []string) bool { return !slices.Contains(other, name) }) {
			return name
		}
	}
	return ""
}
