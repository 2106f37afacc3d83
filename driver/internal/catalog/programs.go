package catalog

import (
	"context"
	"database/sql"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// What stored programs (routines, triggers and views) do that a statement runs
// without naming it, as far as this user sees their texts.

// countCall matches, for Go and for servers under every sql_mode, since it has no
// backslash, what tells of the statement before or of the transaction: row_count(), found_rows(),
// "get diagnostics @n = row_count", Oracle's sql%rowcount, @@autocommit and
// @@session.in_transaction. No column or variable of such a name does.
const countCall = "(^|[^a-z0-9_$])(row_count|found_rows)[`\"]?[[:space:]]*[(]|diagnostics[^;]*row_count|%[[:space:]]*rowcount|@@[a-z_.`[:space:]]*(autocommit|in_transaction)"

var (
	count = regexp.MustCompile(countCall)

	// What begins a statement of a program's own, such as "begin update s" and "then call p";
	// in a group, its verb.
	ownStatement = regexp.MustCompile(`(?:^|\b(?:begin|then|else|do|loop|repeat)\b)\s*(insert|update|delete|replace|select|call)\s*[^\s(]`)

	// The name in "call shop.p", "`my fn`(1)", "f (1)", "\"f\"(1)" and, before a dot, that of
	// a package or database: in one of three groups.
	call = regexp.MustCompile("(?i)\\bcall\\s+(?:\\S+\\s*\\.\\s*)?[`\"]?([\\pL\\pN_$]+)|`([^`\\\\]+)`\\s*[.(]|([\\pL\\pN_$]+)\"?\\s*[.(]")

	// Such as "orders", "été" and "t_$1".
	word = regexp.MustCompile(`[\pL\pN_$]+`)
)

// escape makes a name the content of a string in SQL.
var escape = strings.NewReplacer("'", "''", `\`, `\\`)

// Counts says whether a program, whose text is in lower case, seems to call
// ROW_COUNT(), FOUND_ROWS() or the like to learn of the statement that runs it or
// of the one before. Behind a statement of its own they tell of that, FOUND_ROWS()
// behind a SELECT.
func Counts(text string) bool {
	for _, at := range count.FindAllStringIndex(text, -1) {
		found := strings.Contains(text[at[0]:at[1]], "found_rows")
		before := strings.Split(text[:at[0]+1], ";") // the match may begin with it
		if text[at[0]] == '@' || !slices.ContainsFunc(before[:len(before)-1], func(statement string) bool {
			m := ownStatement.FindStringSubmatch(statement)
			return m != nil && (!found || m[1] == "select")
		}) {
			return true
		}
	}
	return false
}

// Programs are the texts, in lower case, of the stored programs that a statement
// runs: in some databases, and those that are named, the routines and packages,
// the views and the triggers of tables that have these names, and all that is
// named in them in turn.
func (c *Catalog) Programs(ctx context.Context, databases, routines, tables []string) (texts []string, err error) {
	inDatabases, inRoutines, inTables := make(nameSet), make(nameSet), make(nameSet)
	inDatabases.add(databases)
	for {
		before := len(inDatabases) + len(inRoutines) + len(inTables)
		inDatabases.add(routines)
		inDatabases.add(tables)
		inRoutines.add(routines)
		inTables.add(tables)
		if len(inDatabases)+len(inRoutines)+len(inTables) == before {
			return texts, nil
		}
		if texts, err = c.names(ctx, "SELECT LOWER(routine_definition) FROM information_schema.routines WHERE routine_definition IS NOT NULL AND LOWER(routine_schema)"+inDatabases.in()+" AND LOWER(routine_name)"+inRoutines.in()+
			" UNION ALL SELECT LOWER(view_definition) FROM information_schema.views WHERE view_definition IS NOT NULL AND LOWER(table_schema)"+inDatabases.in()+" AND LOWER(table_name)"+inTables.in()+
			" UNION ALL SELECT LOWER(action_statement) FROM information_schema.triggers WHERE LOWER(event_object_schema)"+inDatabases.in()+" AND LOWER(event_object_table)"+inTables.in()); err != nil {
			return nil, err
		}
		routines, tables = nil, nil
		for _, text := range texts {
			routines, tables = append(routines, Calls(text)...), append(tables, Words(text)...)
		}
	}
}

// A nameSet is a set of names in lower case.
type nameSet map[string]bool

func (s nameSet) add(names []string) {
	for _, name := range names {
		s[strings.ToLower(name)] = true
	}
}

// in is the set as SQL's IN (…).
func (s nameSet) in() string {
	names := slices.Sorted(maps.Keys(s))
	for i, name := range names {
		names[i] = escape.Replace(name)
	}
	return " IN ('" + strings.Join(names, "', '") + "')"
}

// Calls are the names of what a text may call: before a parenthesis or, a package,
// before a dot, and behind CALL.
func Calls(text string) (names []string) {
	for _, m := range call.FindAllStringSubmatch(text, -1) {
		names = append(names, m[1]+m[2]+m[3])
	}
	return names
}

// Words are the words of a text, each once.
func Words(text string) []string {
	list := word.FindAllString(text, -1)
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
