package migrate

import (
	"context"
	"slices"

	"github.com/leafsql/leafsql/cmd/leafsql/internal/check"
	"github.com/leafsql/leafsql/cmd/leafsql/internal/survey"
)

// programs are findings about programs that write the tables inside the server, where no driver adds a key.
// They result from analysing the programs' text, so a person may have to overrule them.
var programs = []string{"trigger-inserts", "trigger-sets-key", "routine-inserts", "event-inserts", "hidden"}

// stops are findings with which leaf_alloc gives no ids, or gives ids twice.
var stops = []string{"stores-differ", "row-broken", "alloc-key", "alloc-column", "alloc-engine"}

// judge records the findings that prevent a switch of the tags' tables.
func (m *Migration) judge(ctx context.Context, s *survey.Survey, tags []*Tag) error {
	report, err := check.Run(ctx, s, check.Options{Texts: m.Texts})
	if err != nil {
		return err
	}
	for _, t := range tags {
		if t.Next() == Done {
			continue
		}
		for _, f := range report.Findings {
			if f.Severity != check.Note && t.concerns(f) && (slices.Contains(stops, f.Code) || OfProgram(f) && !m.IgnorePrograms) {
				t.Against = append(t.Against, f)
			}
		}
	}
	return nil
}

// concerns reports whether a finding is about the tag's row, one of its tables, or an object that all tags
// share: leaf_alloc, or a shard.
func (t *Tag) concerns(f check.Finding) bool {
	switch {
	case OfProgram(f) && f.Table != "":
		return slices.ContainsFunc(t.tables, func(o *table) bool { return o.Shard.Label == f.Server && o.Name() == f.Table })
	case f.Tag != "":
		return f.Tag == t.Name || t.Row != nil && f.Tag == t.Row.Tag
	}
	return true
}

// OfProgram reports whether IgnorePrograms suppresses a finding.
func OfProgram(f check.Finding) bool { return slices.Contains(programs, f.Code) }

// Blocks reports whether the step is refused because of a finding in Against.
func (t *Tag) Blocks(step Step) bool {
	return len(t.Against) > 0 && step == t.Next() && step != Widen && step != Done
}
