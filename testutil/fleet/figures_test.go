package fleet

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

var figuresFile = flag.String("figures", "", "file into which TestFigures writes the figures of docs/scale.md; \"\": a few small fleets, not written")

// TestFigures simulates the fleets of docs/scale.md. It writes their figures in the format of go test -bench.
func TestFigures(t *testing.T) {
	text := "pkg: github.com/leafsql/leafsql/testutil/fleet\n"
	figure := func(name string, values ...any) {
		line := fmt.Sprintf("BenchmarkFleet/%s-1 1", name)
		for i := 0; i < len(values); i += 2 {
			line += fmt.Sprintf(" %.4g %s", values[i], values[i+1])
		}
		t.Log(line)
		text += line + "\n"
	}
	most, tags, half := 10, 100, 5*time.Minute
	if *figuresFile != "" {
		most, tags, half = 100_000, 1000, time.Hour
	}
	start := func(name string, cfg Config) {
		if cfg.Processes > most {
			return
		}
		s := run(t, cfg, lasts(cfg.Within+time.Minute))
		all, _ := s.Count(0, time.Minute, storeKinds...)
		_, busiest := s.Count(0, cfg.Within+time.Minute, storeKinds...)
		k := float64(cfg.Share)
		figure(fmt.Sprintf("%s/processes=%d", name, cfg.Processes), k*float64(all), "first-minute", k*float64(busiest), "busiest/s",
			s.Wait(1).Seconds(), "longest-s", s.Wait(0.5).Seconds(), "median-s", k*float64(s.most[storePool]), "connections", k*float64(s.failed), "failed")
	}
	for _, n := range []int{10, 100, 1000, 10_000, 100_000} {
		cfg := fleetOf(n, max(n/1000, 1), 10)
		start("start=1s", cfg)
		cfg.Rate, cfg.Within = 0.5, time.Minute
		start("start=1m", cfg)
		cfg.Rate, cfg.Within = 0.1, 30*time.Minute
		if n <= 10_000 { // far from the server's limit
			cfg.Share = max(n/200, 1)
		}
		start("start=30m", cfg)
		cfg = fleetOf(n, max(n/2000, 1), 1)
		start("hot-row", cfg)
		if cfg = fleetOf(n, max(n/2, 1), tags); n <= 1000 {
			cfg.Rate = 0.1
			start(fmt.Sprintf("tags=%d", tags), cfg)
		}
	}
	steady(t, half, figure)
	for _, n := range []int{10, 100, 1000} {
		if n <= most {
			leases(t, n, figure)
		}
	}
	failOver(t, min(most, 1000), figure)
	if *figuresFile != "" {
		if err := os.WriteFile(*figuresFile, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if n := strings.Count(text, "\n"); n < 9 {
		t.Errorf("%d lines of figures, want at least 9", n)
	}
}

// steady simulates 40 processes, and counts in the second half of the time. Its figures grow with the number of processes.
func steady(t *testing.T, half time.Duration, figure func(string, ...any)) {
	cfg := fleetOf(40, 1, 10)
	cfg.Batch = 50
	s := run(t, cfg, lasts(2*half))
	fetches, _ := s.Count(half, 2*half, ReadRow, Fetch)
	opened, _ := s.Count(half, 2*half, Connect)
	refreshes, _ := s.Count(half, 2*half, ReadCatalog)
	var taken int64
	for _, r := range s.rows {
		taken += r.maxID - 1
	}
	per := 1000 / float64(cfg.Processes) // 1,000 processes
	figure("steady/processes=1000", per*float64(fetches)/half.Seconds(), "fetches/s", per*float64(opened)/half.Seconds(), "connects/s",
		per*float64(refreshes)/half.Seconds(), "refreshes/s", per*s.average[storePool], "store-connections", per*s.average[tablesPool], "table-connections",
		float64(taken-s.issued)/float64(cfg.Processes*cfg.Tags), "lost-ids/restart")
}

// leases simulates processes with worker ids.
func leases(t *testing.T, n int, figure func(string, ...any)) {
	cfg := fleetOf(n, 1, 1)
	cfg.Snowflake, cfg.Rate = true, 0.5
	s := run(t, cfg, lasts(4*time.Minute))
	starting, busiest := s.Count(0, time.Minute, ReadWorker, WriteWorker, ReadIdentity)
	renewals, most := s.Count(2*time.Minute, 4*time.Minute, WriteWorker)
	figure(fmt.Sprintf("leases/processes=%d", n), float64(starting), "first-minute", float64(busiest), "busiest/s", s.Wait(1).Seconds(), "longest-s",
		float64(renewals)/120, "renewals/s", float64(most), "busiest-renewals/s", float64(s.most[storePool]), "connections")
}

// failOver simulates an outage of ten seconds.
func failOver(t *testing.T, n int, figure func(string, ...any)) {
	const at = 90
	cfg := fleetOf(n, max(n/50, 1), 10)
	cfg.Batch = 10
	s := run(t, cfg, func(s *Server) {
		time.Sleep(at * time.Second)
		s.FailOver(10 * time.Second)
		time.Sleep(16 * time.Minute)
	})
	k := float64(cfg.Share)
	all, busiest := s.Count(at*time.Second, (at+960)*time.Second, storeKinds...)
	figure(fmt.Sprintf("fail-over/processes=%d", n), k*float64(all), "statements", k*float64(busiest), "busiest/s", k*float64(s.failed), "failed", float64(s.jumps), "moved-rows")
}
