package check

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/leafsql/leafsql/cmd/leafsql/internal/survey"
	"github.com/leafsql/leafsql/internal/chinese"
)

// A Rate is the consumption of a tag's ids.
type Rate struct{ PerSecond float64 }

// CompareRows compares the rows of leaf_alloc at two times. A tag with an unchanged max_id gets no rate: processes fetch
// ids in ranges, so they may have used ids without a fetch.
func CompareRows(before, after []survey.Row, apart time.Duration) map[string]Rate {
	was := make(map[string]int64, len(before))
	for _, r := range before {
		was[r.Tag] = r.MaxID
	}
	rates := make(map[string]Rate)
	for _, r := range after {
		if old, ok := was[r.Tag]; ok && r.MaxID > old && apart > 0 {
			rates[r.Tag] = Rate{float64(r.MaxID-old) / apart.Seconds()}
		}
	}
	return rates
}

// ReadReport parses a report that an earlier check wrote with -json. It returns the report's rows, with tag
// and max_id only, and its time.
func ReadReport(r io.Reader) (rows []survey.Row, at time.Time, err error) {
	var report struct {
		Time time.Time
		Tags []struct {
			Tag   string
			MaxID json.Number `json:"max_id"` // not quoted before 0.2
		}
	}
	if err = json.NewDecoder(r).Decode(&report); err == nil && report.Time.IsZero() {
		err = errors.New("it has no time")
	}
	if err != nil {
		return nil, at, fmt.Errorf("leafsql: check: -since: it is not the report of an earlier check: %w; name a file that leafsql check -json wrote", err)
	}
	for _, tag := range report.Tags {
		maxID, err := tag.MaxID.Int64()
		if err != nil {
			return nil, at, fmt.Errorf("leafsql: check: -since: it is not the report of an earlier check: %w; name a file that leafsql check -json wrote", err)
		}
		rows = append(rows, survey.Row{Tag: tag.Tag, MaxID: maxID})
	}
	return rows, report.Time, nil
}

// FormatYears formats a number of years for people, in years, days or hours.
func FormatYears(texts chinese.Texts, years float64) string {
	days := years * 365.25
	switch {
	case years > 10_000:
		return texts.Text("over 10,000 years")
	case years >= 10:
		return texts.Sprintf("%.0f years", years)
	case years >= 1:
		return texts.Sprintf("%.1f years", years)
	case days >= 2:
		return texts.Sprintf("%.0f days", days)
	}
	return texts.Sprintf("%.0f hours", days*24)
}
