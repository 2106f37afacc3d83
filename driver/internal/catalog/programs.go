package catalog

import (
	"context"
	"database/sql"
	"regexp"
	"slices"
	"strings"
)

// What stored programs (routines, triggers and views) do that a statement runs
// without naming it, as far as this user sees their texts.

// countCalls matches what tells of the statement before or of the transaction.
const countCalls = "row_?count|found_rows|@@.*(autocommit|in_transaction)"

var (
	counting = regexp.MustCompile(countCalls)
	done     = regexp.MustCompile(`\b(insert|update|delete|replace|select|load|call|execute)\b[^;]*;`)
	calls    = regexp.MustCompile("(?i)\\bcall\\s+(?:\\S+\\s*\\.\\s*)?[`\"]?([\\pL\\pN_$]+)|`([^`\\\\]+)`\\s*[.(]|([\\pL\\pN_$]+)\"?\\s*[.(]")
	words    = regexp.MustCompile(`[\pL\pN_$]+`)
)

// Counts says whether a program, whose text is in lower case, seems to call
// ROW_COUNT(), FOUND_ROWS() or the like to learn of the statement that runs it or
// of the one before. Behind a statement of its own they tell of that.
func Counts(text string) bool {
	at := counting.FindStringIndex(text)
	return at != nil && (text[at[0]] == '@' || !done.MatchString(text[:at[0]]))
}

// Reached are the texts, in lower case, of the stored programs that a statement
// runs: of the routines and packages, views and triggers of tables that have these
// names, and of all that is named in them in turn.
func (c *Catalog) Reached(ctx context.Context, routines, tables []string) (texts []string, err error) {
	known := make(map[string]bool)
	in := func(kind string, names []string) string {
		list := " IN (''"
		for _, name := range names {
			if name = strings.ToLower(name); !known[kind+name] {
				known[kind+name] = true
				list += ", '" + strings.ReplaceAll(name, "'", "''") + "'" // no backslash is in it
			}
		}
		return list + ")"
	}
	for {
		before := len(known)
		inRoutines, inTables := in("routine ", routines), in("table ", tables)
		if len(known) == before {
			return texts, nil
		}
		found, err := c.names(ctx, "SELECT LOWER(routine_definition) FROM information_schema.routines WHERE routine_schema <> 'sys' AND routine_definition IS NOT NULL AND LOWER(routine_name)"+inRoutines+
			" UNION ALL SELECT LOWER(view_definition) FROM information_schema.views WHERE table_schema <> 'sys' AND view_definition IS NOT NULL AND LOWER(table_name)"+inTables+
			" UNION ALL SELECT LOWER(action_statement) FROM information_schema.triggers WHERE LOWER(event_object_table)"+inTables)
		if err != nil {
			return nil, err
		}
		texts, routines, tables = append(texts, found...), nil, nil
		for _, text := range found {
			routines, tables = append(routines, Calls(text)...), append(tables, Words(text)...)
		}
	}
}

// Calls are the names of what a text may call: before a parenthesis or, a package,
// before a dot, and behind CALL.
func Calls(text string) (names []string) {
	for _, m := range calls.FindAllStringSubmatch(text, -1) {
		names = append(names, m[1]+m[2]+m[3])
	}
	return names
}

// Words are the words of a text, each once.
func Words(text string) []string {
	list := words.FindAllString(text, -1)
	slices.Sort(list)
	return slices.Compact(list)
}

// ViewsReadID says whether some view reads LAST_INSERT_ID(), or calls a stored
// function where some program does.
func (c *Catalog) ViewsReadID(ctx context.Context) (bool, error) {
	var views sql.NullInt64 // 1: some calls a function, 2: some reads it
	err := c.db.QueryRowContext(ctx, "SELECT MAX(IF("+readsIDIn("view_definition")+", 2, view_definition LIKE '%`(%')) FROM information_schema.views WHERE table_schema <> 'sys'").Scan(&views)
	if err != nil || views.Int64 != 1 {
		return views.Int64 > 1, err
	}
	var some bool
	err = c.db.QueryRowContext(ctx, "SELECT EXISTS (SELECT 1 FROM information_schema.routines WHERE routine_schema <> 'sys' AND (routine_type <> 'PROCEDURE' AND routine_definition IS NULL OR "+readsIDIn("routine_definition")+
		")) OR EXISTS (SELECT 1 FROM information_schema.triggers WHERE "+readsIDIn("action_statement")+")").Scan(&some)
	return some, err
}
