package driver

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/samber/lo"

	"github.com/leafsql/leafsql/idgen"
)

// The kinds of generator a Rule can name.
const (
	Segment   = "segment"
	Snowflake = "snowflake"
	UUID7     = "uuid7"
	Sequence  = "sequence"
)

// Rule says which tables get their keys, and from where: one entry of
// leafTables, [db.]table[:column[:generator]] or ![db.]table. A rule with * in
// Table leaves out tables that have no single-column integer key, unless it
// names the Column.
type Rule struct {
	Database string // may hold *; "" means the DSN's database, or where that names none each
	Table    string // may hold *
	Column   string // "" means the table's single-column primary key
	Kind     string // Segment (also when ""), Sequence, Snowflake or UUID7
	Tag      string // biz_tag of the segment, or the sequence's name; "" means Table as written here, or under * each table's name; behind "db." where the DSN names no database
	Exclude  bool   // tables that it means are not filled, whatever other rules say (!pattern)

	// Generator, when set, makes the ids instead of Kind and Tag. It has no
	// place in a DSN.
	Generator idgen.Generator
}

// parseRules reads the value of leafTables, other than auto and none.
func parseRules(s string) ([]Rule, error) {
	var rules []Rule
	for entry := range strings.SplitSeq(s, ",") {
		r, err := parseRule(strings.TrimSpace(entry))
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(rules, func(o Rule) bool { return o.Database == r.Database && o.Table == r.Table }) {
			return nil, ruleError(entry, "the same table stands in two rules", "keep one of them")
		}
		rules = append(rules, r)
	}
	return rules, nil
}

func parseRule(s string) (Rule, error) {
	var r Rule
	var bare string
	bare, r.Exclude = strings.CutPrefix(s, "!")
	name, rest, more := strings.Cut(bare, ":")
	column, generator, named := strings.Cut(rest, ":")
	r.Column = column
	r.Table = name
	if db, table, ok := strings.Cut(name, "."); ok {
		r.Database, r.Table = db, table
	}
	switch {
	case strings.HasPrefix(name, "."):
		return r, ruleError(s, "the database before the dot is empty", "write db.table or table")
	case r.Table == "":
		return r, ruleError(s, "it names no table", "write [db.]table[:column[:generator]]")
	case strings.ContainsAny(s, ";"):
		return r, ruleError(s, "rules are separated by commas", "write a , for the ;")
	case strings.ContainsAny(name, "`'\"") || strings.ContainsFunc(name, unicode.IsSpace):
		return r, ruleError(s, "a name is written without quotes and spaces", "write [db.]table[:column[:generator]], and commas between rules")
	case r.Exclude && more:
		return r, ruleError(s, "a rule that takes tables out names no column", "write ![db.]table")
	case r.Table == "auto" || r.Table == "none":
		return r, ruleError(s, r.Table+" stands alone", "write leafTables="+r.Table+", or rules only")
	}
	switch kind, arg, ok := strings.Cut(generator, "("); {
	case r.Exclude:
	case !named, generator == Segment:
		r.Kind = Segment
	case generator == Snowflake, generator == UUID7:
		r.Kind = generator
	case ok && (kind == Segment || kind == Sequence) && strings.HasSuffix(arg, ")") && len(arg) > 1:
		r.Kind, r.Tag = kind, arg[:len(arg)-1]
		if len(r.Tag) > 128 {
			return r, ruleError(s, "the name is longer than the table's 128 characters", "shorten it")
		}
	default:
		return r, ruleError(s, fmt.Sprintf("unknown generator %q", generator), "known are segment, segment(TAG), sequence(NAME), snowflake and uuid7")
	}
	return r, nil
}

func ruleError(rule, reason, way string) error {
	return &ConfigError{Param: "leafTables", Reason: fmt.Sprintf("rule %q: %s", rule, reason), Fix: way}
}

// takesSnowflakes reports whether the rule's tables need a worker id.
func (r Rule) takesSnowflakes() bool {
	return r.Kind == Snowflake && r.Generator == nil && !r.Exclude
}

// String is the rule as a DSN writes it.
func (r Rule) String() string {
	s := r.Table
	if r.Database != "" {
		s = r.Database + "." + s
	}
	switch {
	case r.Exclude:
		return "!" + s
	case r.Kind == Snowflake, r.Kind == UUID7:
		return s + ":" + r.Column + ":" + r.Kind
	case r.Tag != "":
		return s + ":" + r.Column + ":" + cmp.Or(r.Kind, Segment) + "(" + r.Tag + ")"
	case r.Column != "":
		return s + ":" + r.Column
	}
	return s
}

// tag is the biz_tag, or the sequence, that feeds a table the rule means. Tables of a pattern
// such as order_* are shards of one, and share it.
func (r Rule) tag(table string) string {
	switch {
	case r.Tag != "":
		return r.Tag
	case r.Table == "*":
		return table
	}
	return r.Table
}

// bySpecificity orders rules so that the first that matches is the one that
// counts: what takes tables out before what names them, exact names before
// patterns, longer patterns before shorter ones.
func bySpecificity(rules []Rule) []Rule {
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

// wildcard reports whether name fits pattern, in which * stands for any run
// of characters.
func wildcard(pattern, name string) bool {
	first, others, many := strings.Cut(pattern, "*")
	rest, ok := strings.CutPrefix(name, first)
	if !many {
		return ok && rest == ""
	}
	parts := strings.Split(others, "*")
	last := len(parts) - 1
	for _, part := range parts[:last] { // each as early as it can be, which leaves most to those behind it
		if ok {
			_, rest, ok = strings.Cut(rest, part)
		}
	}
	return ok && strings.HasSuffix(rest, parts[last])
}
