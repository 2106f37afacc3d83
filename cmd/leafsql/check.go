package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"time"

	"github.com/samber/lo"

	"github.com/leafsql/leafsql/cmd/leafsql/internal/check"
	"github.com/leafsql/leafsql/cmd/leafsql/internal/screen"
	"github.com/leafsql/leafsql/cmd/leafsql/internal/survey"
)

func runCheck(ctx context.Context, s *screen.Screen, args []string) (int, error) {
	f := newFlags(s, "check").withShards().withJSON()
	since := f.String("since", "", "an earlier report, made with -json: the `file` from which ids per second are counted")
	measure := f.Duration("measure", 0, "how long to count ids per second, such as 1m")
	if err := f.parse(args, false); err != nil {
		return exitFailure, err
	}
	if *measure < 0 || *measure > 0 && *since != "" {
		return exitFailure, errors.New("leafsql: check: ids per second are measured from -since, or for a -measure above 0; set one of them")
	}
	found, err := f.takeSurvey(ctx)
	if err != nil {
		return exitFailure, err
	}
	defer found.Set.Close()
	rates := make(map[string]check.Rate)
	if *since != "" {
		file, err := os.Open(*since)
		if err != nil {
			return exitFailure, fmt.Errorf("leafsql: check: -since: %w; name a file that leafsql check -json wrote", err)
		}
		defer file.Close()
		before, at, err := check.ReadReport(file)
		if err != nil {
			return exitFailure, err
		}
		rates = check.CompareRows(before, found.Rows, time.Since(at))
	}
	if *measure > 0 {
		measured, err := measureRates(ctx, s, found, *measure)
		if err != nil {
			return exitFailure, err
		}
		maps.Copy(rates, measured)
	}
	done := s.Progress(func() string { return s.Texts.Text("looking at rights, triggers, routines and views") })
	report, err := check.Run(ctx, found, check.Options{Rates: rates, Texts: s.Texts, Sprintf: s.Sprintf})
	done()
	switch {
	case err != nil:
		return exitFailure, err
	case f.json:
		return report.Status(), s.JSON(report)
	}
	printReport(s, report)
	return report.Status(), nil
}

// measureRates reads leaf_alloc again after wait, and returns how fast the ids of each tag were used in this time.
func measureRates(ctx context.Context, s *screen.Screen, found *survey.Survey, wait time.Duration) (map[string]check.Rate, error) {
	began := time.Now()
	defer s.Progress(func() string {
		return s.Texts.Sprintf("counting ids for %v more", (wait - time.Since(began)).Round(time.Second))
	})()
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-time.After(wait):
	}
	after, err := survey.ReadRows(ctx, found.Set.Store, "NULL")
	return check.CompareRows(found.Rows, after, time.Since(began)), err
}

func printReport(s *screen.Screen, r *check.Report) {
	if len(r.Tables) > 0 {
		var rows [][]string
		for _, t := range r.Tables {
			used, years := screen.Unknown, screen.Unknown
			if t.Used != nil {
				used = fmt.Sprintf("%.1f %%", 100**t.Used)
			}
			if t.Used != nil && *t.Used > 1 { // ids do not fit into the column
				used = "> 100 %"
			} else if t.Years != nil {
				years = check.FormatYears(s.Texts, *t.Years)
			}
			rows = append(rows, []string{t.Server, t.Table, t.Key, t.Type, t.Generator, formatCount(t.HighestKey), formatCount(t.NextID), used, years})
		}
		names := []string{"SERVER", "TABLE", "KEY", "TYPE", "IDS FROM", "HIGHEST KEY", "NEXT ID", "USED", "LASTS"}
		if !lo.ContainsBy(r.Tables, func(t check.Table) bool { return t.Years != nil }) { // nothing was measured
			names = names[:len(names)-1]
			for i := range rows {
				rows[i] = rows[i][:len(names)]
			}
		}
		if len(r.Shards) == 1 { // without the column of the server, for narrow terminals
			s.Printf("Server: %s\n\n", r.Shards[0].Server)
			names = names[1:]
			for i := range rows {
				rows[i] = rows[i][1:]
			}
		}
		s.Table(names, rows, "HIGHEST KEY", "NEXT ID", "USED", "LASTS")
		s.Printf("\n")
	}
	printFindings(s, r.Findings)
	problems := lo.CountBy(r.Findings, isProblem)
	if len(r.Findings) > 0 {
		s.Printf("\n")
	}
	s.Printf("Tables: %d, tags: %d, errors and warnings: %d\n", len(r.Tables), len(r.Tags), problems)
	printNext(s, r.Findings)
}

func isProblem(f check.Finding) bool { return f.Severity != check.Note }

func formatCount(n *int64) string {
	if n == nil {
		return screen.Unknown
	}
	return screen.FormatCount(*n)
}
