// Package rules holds the rules of a configuration. It finds the tables that they name, and compares a rule
// with the columns of a table.
//
//	for _, r := range rules.BySpecificity(config.Rules) { … } // the first match applies
//	fit, err := config.Fit(rule, name, table) // nil: the rule leaves the table out
//
// It queries no server.
package rules

import (
	"cmp"
	"slices"
	"strings"

	"github.com/samber/lo"

	"github.com/leafsql/leafsql/idgen"
	"github.com/leafsql/leafsql/internal/inspect"
)

// A Kind is a kind of generator.
type Kind = inspect.Kind

// The kinds of generator that a Rule can name.
const (
	Segment   Kind = "segment"
	Snowflake Kind = "snowflake"
	UUID7     Kind = "uuid7"
	Sequence  Kind = "sequence"
)

// A Rule is driver.Rule.
type Rule struct {
	Database string // may contain *; "" is the DSN's database, or all databases if the DSN names none
	Table    string // may contain *
	Column   string // "" is the table's single-column primary key
	Kind     Kind   // Segment (also when ""), Sequence, Snowflake or UUID7
	Tag      string // biz_tag of the segment, or the sequence's name; "" means the text in Table, or each table's name if Table is "*". If the DSN names no database, "db." is in front of it
	Exclude  bool   // the rule's tables are not filled, even if other rules name them (!pattern)

	// Generator, if not nil, makes the ids. Kind and Tag are then ignored. It cannot be
	// set in a DSN.
	Generator idgen.Generator
}

// String returns the rule as a DSN writes it.
func (r Rule) String() string {
	s := r.Table
	if r.Database != "" {
		s = r.Database + "." + s
	}
	switch {
	case r.Exclude:
		return "!" + s
	case r.Kind == Snowflake, r.Kind == UUID7:
		return s + ":" + r.Column + ":" + string(r.Kind)
	case r.Tag != "":
		return s + ":" + r.Column + ":" + string(cmp.Or(r.Kind, Segment)) + "(" + r.Tag + ")"
	case r.Column != "":
		return s + ":" + r.Column
	}
	return s
}

// TagOf returns the biz_tag or the sequence of a table of the rule. Tables of a pattern
// such as order_* are shards of one table, and share the tag.
func TagOf(r Rule, table string) string {
	switch {
	case r.Tag != "":
		return r.Tag
	case r.Table == "*":
		return table
	}
	return r.Table
}

// IsPattern reports whether the rule may name more than one table of a database.
func IsPattern(r Rule) bool { return strings.Contains(r.Table, "*") }

// BySpecificity returns the rules in an order in which the first match applies:
// exclusions first, exact names before patterns, longer patterns before shorter ones.
func BySpecificity(rules []Rule) []Rule {
	weight := func(pattern string) int {
		if pattern == "" {
			return 1<<16 - 1 // the DSN's database
		}
		if !strings.Contains(pattern, "*") {
			return 1 << 16
		}
		return len(strings.ReplaceAll(pattern, "*", ""))
	}
	rank := func(r Rule) []int {
		return []int{lo.Ternary(r.Exclude, 1, 0), weight(r.Table), weight(r.Database)}
	}
	sorted := slices.Clone(rules)
	slices.SortStableFunc(sorted, func(a, b Rule) int { return slices.Compare(rank(b), rank(a)) })
	return sorted
}

// Match reports whether name fits pattern, in which * stands for any run
// of characters.
func Match(pattern, name string) bool {
	first, others, many := strings.Cut(pattern, "*")
	rest, ok := strings.CutPrefix(name, first)
	if !many {
		return ok && rest == ""
	}
	parts := strings.Split(others, "*")
	last := len(parts) - 1
	for _, part := range parts[:last] { // the earliest match leaves the longest rest for the other parts
		if ok {
			_, rest, ok = strings.Cut(rest, part)
		}
	}
	return ok && strings.HasSuffix(rest, parts[last])
}
