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

// Stored programs (routines, triggers and views) run within a statement that does
// not show their texts. What they would notice of one that runs as several is found
// in the catalog.

// A viewsLookup is what was known at some time of all views.
type viewsLookup struct {
	at      time.Time
	readsID bool // some view may read LAST_INSERT_ID()
}

// viewsReadID says whether some view may read LAST_INSERT_ID(). It is asked when a
// statement needs it: MariaDB opens every view for it.
func (c *Connector) viewsReadID(ctx context.Context, s *schema) (bool, error) {
	s.mu.Lock()
	known := s.views
	s.mu.Unlock()
	if known == nil || time.Since(known.at) > refreshEvery {
		ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
		defer cancel()
		reads, err := c.catalog.ViewsReadID(ctx)
		if err != nil {
			return false, catalogError("the views", err)
		}
		known = &viewsLookup{time.Now(), reads}
		s.mu.Lock()
		s.views = known
		s.mu.Unlock()
	}
	return known.readsID, nil
}

// checkPrograms refuses a statement that runs as several where a stored program that
// it runs would notice: one that calls ROW_COUNT() or the like, or one that reads or
// sets what the statement's other parts do row by row.
func (c *conn) checkPrograms(ctx context.Context, st *statement, in *insert.Insert, text string) (err error) {
	t := in.Table.Ref.(*table)
	effects := in.Staging != nil && (in.Staging.Effects || in.Staging.Variables) || in.Evaluation != nil && in.Evaluation.Variables
	if !effects && !t.programsCount || st.checkedUntil.Load() > time.Now().UnixMilli() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	databases := []string{t.name.DB, c.db}
	programs := func(routines []string, tables ...string) (texts []string) {
		if err == nil {
			texts, err = c.connector.catalog.Programs(ctx, databases, routines, tables)
		}
		return texts
	}
	reason, fix := "", "insert the rows one by one"
	if t.programsCount && slices.ContainsFunc(programs(catalog.Calls(text), append(catalog.Words(text), t.name.Table)...), catalog.Counts) {
		reason = "a stored function, trigger or view that it runs calls ROW_COUNT(), FOUND_ROWS() or the like, which would tell of leafsql's own statements, since this one runs as several"
		fix = "put the count into a user variable first, and read that in the program"
	}
	if effects && reason == "" {
		text, target := strings.ToLower(text), strings.ToLower(t.name.Table)
		rows, tail, _ := strings.Cut(text, "on duplicate key update")
		ofSource := strings.Join(programs(catalog.Calls(rows)), ";")
		ofCopy := strings.Join(append(programs(catalog.Calls(tail)), programs(nil, target)...), ";") // which run with each row
		if in.Staging != nil {
			reason = earlySource(target, rows, ofSource, tail, ofCopy)
		} else if name := inAll(namesIn(variables, text), assignedIn(text+";"+ofSource+";"+ofCopy), namesIn(variables, ofSource+";"+ofCopy)); name != "" {
			reason = "its keys and a stored function or trigger use the variable @" + name + ", and keys are evaluated first"
		}
	}
	switch {
	case err != nil:
		return catalogError("the stored programs", err)
	case reason != "":
		return &RefusedError{t.name.String(), "", reason, fix}
	}
	st.checkedUntil.Store(time.Now().Add(refreshEvery).UnixMilli())
	return nil
}

// earlySource says what would be noticed of a select that is run to its end before
// the first row is stored, "" for nothing. rows and tail are the statement up to its
// update list and from there on; ofSource and ofCopy, the texts of the programs that
// the select and the copy run.
func earlySource(target, rows, ofSource, tail, ofCopy string) string {
	const early = ", and the select is run to its end before the first row is stored"
	if name := inAll(append(namesIn(written, ofCopy), target), namesIn(tables, ofSource)); name != "" {
		return "a stored function in its select uses " + name + early
	}
	if name := inAll(namesIn(written, ofSource), namesIn(tables, ofCopy)); name != "" {
		return "a stored function in its select writes " + name + ", which a trigger or the update list uses" + early
	}
	if name := inAll(assignedIn(rows+";"+ofSource), namesIn(variables, tail+";"+ofCopy)); name != "" {
		return "its select sets the variable @" + name + ", which a trigger or the update list uses" + early
	}
	if name := inAll(assignedIn(tail+";"+ofCopy), namesIn(variables, rows+";"+ofSource)); name != "" {
		return "its select uses the variable @" + name + ", which a trigger or the update list sets" + early
	}
	return ""
}

// Patterns of names in a text of lower case: the name is the last group that is not empty.
var (
	// The table in "insert ignore into shop.t", "replace t", "update `t`" and "delete from t";
	// "" in "for update" and "on duplicate key update".
	written = regexp.MustCompile(`\b(?:key|for)\s+update\b|\b(?:(?:insert|replace)(?:\s+(?:ignore|low_priority|delayed|high_priority))*(?:\s+into)?|update|delete\s+from)\s+(?:\S+\s*\.\s*)?` + aName)

	// The table in "from shop.t", "join (t", "into t" and "from s, t", and any name behind a comma.
	tables = regexp.MustCompile(`(?s)(?:\b(?:from|join|straight_join|into|table|(?:insert|replace|update)(?:\s+(?:ignore|low_priority|delayed|high_priority))*)\b|,)(?:[\s(]|/\*.*?\*/|(?:#|--)[^\n]*\n)*(?:` + aName + `\s*\.\s*)?` + aName)

	// The variable x in "@x := 1", "set @x = 1" and "get diagnostics 1 @x = row_count".
	assigned = regexp.MustCompile(`@` + aName + `\s*:=|(?:\bset|\bdiagnostics|\d|,)\s*@` + aName + `\s*=`)

	// Where all variables are set: "into v, @x" and "call p(1, @x)", which may be its OUT
	// parameter.
	results = regexp.MustCompile("\\binto\\s+[@\\pL\\pN_$.`\"']+(?:\\s*,\\s*[@\\pL\\pN_$.`\"']+)*|\\bcall\\b[^;]*")

	// The variable x in "@x" and "@`x`", wherever it stands.
	variables = regexp.MustCompile(`@` + aName)
)

// aName matches a name in any quotes or none: t, `t`, "t" or 't'.
const aName = "[`\"']?([\\pL\\pN_$]+)[`\"']?"

// namesIn are the names that a pattern finds in a text.
func namesIn(pattern *regexp.Regexp, text string) (names []string) {
	for _, m := range pattern.FindAllStringSubmatch(text, -1) {
		names = append(names, cmp.Or(m[len(m)-1], m[1]))
	}
	return names
}

// assignedIn are the variables that a text sets.
func assignedIn(text string) []string {
	return append(namesIn(assigned, text), namesIn(variables, strings.Join(results.FindAllString(text, -1), ";"))...)
}

// inAll is the first name that is in all lists, "" for none.
func inAll(list []string, others ...[]string) string {
	for _, name := range list {
		if !slices.ContainsFunc(others, func(other []string) bool { return !slices.Contains(other, name) }) {
			return name
		}
	}
	return ""
}
