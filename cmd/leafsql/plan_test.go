package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/leafsql/leafsql/cmd/leafsql/internal/migrate"
	"github.com/leafsql/leafsql/cmd/leafsql/internal/screen"
	"github.com/leafsql/leafsql/cmd/leafsql/internal/survey"
	"github.com/leafsql/leafsql/internal/inspect"
)

// TestPlanShowsEffectsOncePerRelease: a plan shows once for each release with the bug MDEV-36026 the effects of the trigger there.
func TestPlanShowsEffectsOncePerRelease(t *testing.T) {
	var tag survey.Tag
	for _, version := range []int{110405, 110405, 110406, 101111} {
		tag.Tables = append(tag.Tables, &survey.Table{Shard: &survey.Shard{Inspection: &inspect.Inspection{MariaDB: true, Version: version}}})
	}
	var out bytes.Buffer
	(&plan{screen: &screen.Screen{Out: &out}}).printRefusedSelects([]*migrate.Tag{{Tag: &tag}})
	for text, want := range map[string]int{"MDEV-36026": 2, "MariaDB 11.4.5 ": 1, "to 11.4.6 before switch": 1, "MariaDB 10.11.11 ": 1, "to 10.11.12 before switch": 1} {
		if got := strings.Count(out.String(), text); got != want {
			t.Errorf("occurrences of %q = %d, want %d in\n%s", text, got, want, &out)
		}
	}
}
