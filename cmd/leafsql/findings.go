package main

import (
	"slices"
	"strings"

	"github.com/samber/lo"

	"github.com/leafsql/leafsql/cmd/leafsql/internal/check"
	"github.com/leafsql/leafsql/cmd/leafsql/internal/screen"
)

var severityColours = map[check.Severity]screen.Colour{check.Error: screen.Red, check.Warning: screen.Yellow, check.Unknown: screen.Magenta, check.Note: screen.Cyan}

// printFindings shows findings in their order, and findings that differ only in their place and SQL as one.
func printFindings(s *screen.Screen, findings []check.Finding) {
	type text struct {
		code, message, fix string
		severity           check.Severity
	}
	textOf := func(f check.Finding) text { return text{f.Code, f.Message, f.Fix, f.Severity} }
	groups := lo.GroupBy(findings, textOf)
	for i, t := range lo.Uniq(lo.Map(findings, func(f check.Finding, _ int) text { return textOf(f) })) {
		if i > 0 {
			s.Printf("\n")
		}
		group := groups[t]
		servers := lo.Uniq(lo.Map(group, func(f check.Finding, _ int) string { return f.Server }))
		var places []string
		for _, server := range servers {
			names := lo.FilterMap(group, func(f check.Finding, _ int) (string, bool) {
				name := f.Table
				if name == "" {
					name = f.Tag
				}
				return screen.ReplaceControl(name), f.Server == server
			})
			places = append(places, strings.TrimRight(server+" "+strings.Join(names, s.Texts.Text(", ")), " "))
		}
		s.PrintLabel(severityColours[t.severity], s.Texts.Text(string(t.severity)), s.Sprintf(": %s: %s", t.code, strings.Join(places, s.Texts.Text("; "))))
		s.Printf("  %s\n", screen.ReplaceControl(t.message))
		if t.fix != "" {
			s.Printf("  Fix: %s.\n", screen.ReplaceControl(t.fix))
		}
		for _, server := range servers {
			// A statement may be in several findings, such as a SET before each ALTER, so only whole lists are left out.
			lists := lo.FilterMap(group, func(f check.Finding, _ int) (string, bool) {
				return strings.Join(f.SQL, ";\n"), f.Server == server && len(f.SQL) > 0
			})
			if len(servers) == 1 {
				server = ""
			}
			printSQLOn(s, 4, server, lo.Uniq(lists)...)
		}
	}
}

// printSQLOn shows a comment with the name of a server unless that is "", and the statements for it.
func printSQLOn(s *screen.Screen, indent int, server string, statements ...string) {
	if server != "" && len(statements) > 0 {
		s.PrintSQL(indent, s.Sprintf("-- on %s", server))
	}
	for _, sql := range statements {
		s.PrintSQL(indent, sql+";")
	}
}

// initCodes are the codes of findings that leafsql init fixes.
var initCodes = []string{"alloc-missing", "leases-missing", "registry-missing", "row-missing", "row-too-low"}

// printNext shows the order in which the findings are to be fixed.
func printNext(s *screen.Screen, findings []check.Finding) {
	problems := lo.Filter(findings, func(f check.Finding, _ int) bool { return isProblem(f) })
	has := func(codes ...string) bool {
		return lo.ContainsBy(problems, func(f check.Finding) bool { return slices.Contains(codes, f.Code) })
	}
	switch {
	case len(problems) == 0:
		s.Printf("Nothing to do. Run leafsql check again after changes of tables or servers.\n")
		return
	case lo.EveryBy(problems, func(f check.Finding) bool { return f.Severity == check.Unknown }):
		s.Printf("Next: apply the fixes above, so that the check has a result, and run leafsql check again.\n")
		return
	}
	var steps []string
	if has(initCodes...) {
		steps = append(steps, s.Sprintf("Run leafsql init with the same DSNs and -dry-run: it shows the missing tables and rows. Then run it without -dry-run."))
	}
	if lo.ContainsBy(problems, func(f check.Finding) bool { return f.Migrate }) {
		steps = append(steps, s.Sprintf("Run leafsql migrate with the same DSNs for the tables with AUTO_INCREMENT: it shows each step before you run it."))
	}
	if lo.ContainsBy(problems, func(f check.Finding) bool { return !f.Migrate && !slices.Contains(initCodes, f.Code) }) {
		step := s.Sprintf("Apply the other fixes from top to bottom: one may depend on those before it.")
		if len(steps) == 0 {
			step = s.Sprintf("Apply the fixes from top to bottom: one may depend on those before it.")
		}
		steps = append(steps, step)
	}
	s.Printf("Next, in this order:\n")
	for i, step := range append(steps, s.Sprintf("Run leafsql check again.")) {
		s.PrintStep(i+1, step)
	}
}
