package migrate

import (
	"context"
	"slices"

	"github.com/leafsql/leafsql/cmd/leafsql/internal/check"
	"github.com/leafsql/leafsql/cmd/leafsql/internal/survey"
)

// programFindings are findings about programs that write the tables inside the server, where no driver adds a
// key. They are based on an analysis of the programs' text, which may be wrong, so a user can ignore them.
var programFindings = []string{"trigger-inserts", "trigger-sets-key", "routine-inserts", "event-inserts", "hidden"}

// storeFindings are findings because of which leaf_alloc issues no ids, or issues ids twice.
var storeFindings = []string{"stores-differ", "row-broken", "alloc-key", "alloc-column", "alloc-engine"}

// findObstacles records the findings that prevent a switch of the tags' tables.
func (m *Migration) findObstacles(ctx context.Context, s *survey.Survey, tags []*Tag) error {
	report, err := check.Run(ctx, s, check.Options{Texts: m.Texts})
	if err != nil {
		return err
	}
	for _, t := range tags {
		if t.Next() == Done {
			continue
		}
		for _, f := range report.Findings {
			if f.Severity != check.Note && t.isConcernedBy(f) && (slices.Contains(storeFindings, f.Code) || IsProgramFinding(f) && !m.IgnorePrograms) {
				t.Obstacles = append(t.Obstacles, f)
			}
		}
	}
	return nil
}

// isConcernedBy reports whether a finding is about the tag's row, one of its tables, or an object that all tags
// share: leaf_alloc, or a shard.
func (t *Tag) isConcernedBy(f check.Finding) bool {
	switch {
	case IsProgramFinding(f) && f.Table != "":
		return slices.ContainsFunc(t.tables, func(o *table) bool { return o.Shard.Label == f.Server && o.Name() == f.Table })
	case f.Tag != "":
		return f.Tag == t.Name || t.Row != nil && f.Tag == t.Row.Tag
	}
	return true
}

// IsProgramFinding reports whether IgnorePrograms suppresses a finding.
func IsProgramFinding(f check.Finding) bool { return slices.Contains(programFindings, f.Code) }

// IsBlocked reports whether the step is refused because of a finding in Obstacles.
func (t *Tag) IsBlocked(step Step) bool {
	return len(t.Obstacles) > 0 && step == t.Next() && step != Widen && step != Done
}
