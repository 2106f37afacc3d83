package segment

import (
	"testing"
	"time"
)

func TestPaceAdaptsTheStep(t *testing.T) {
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		name      string
		step, row int64
		lasted    time.Duration
		want      int64
	}{
		{"short doubles", 1000, 1000, time.Second, 2000},
		{"short doubles again", 2000, 1000, 15*time.Minute - 1, 4000},
		{"15 minutes stay", 4000, 1000, 15 * time.Minute, 4000},
		{"30 minutes stay", 4000, 1000, 30 * time.Minute, 4000},
		{"long halves", 4000, 1000, 30*time.Minute + 1, 2000},
		{"down to the row's", 1500, 1000, time.Hour, 1000},
		{"no lower", 1000, 1000, 24 * time.Hour, 1000},
		{"up to a million", 600_000, 1000, time.Second, 1_000_000},
		{"no higher", 1_000_000, 1000, time.Second, 1_000_000},
		{"a larger row is its own cap", 3_000_000, 3_000_000, time.Second, 3_000_000},
		{"a row that was larger", 3_000_000, 1000, time.Second, 1_000_000},
		{"the largest step", maxRowStep, maxRowStep, time.Second, maxRowStep},
		{"the second range", 0, 10, time.Second, 10},
		{"the second range, late", 0, 10, time.Hour, 10},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := pace{hasRange: true, step: c.step, rowStep: c.row, fetchedAt: begin}
			if got := p.nextStep(begin.Add(c.lasted)); got != c.want {
				t.Errorf("got %d, want %d", got, c.want)
			}
		})
	}
	for row, want := range map[int64]int64{1: 1, 16: 16, 17: 16, 1000: 16} {
		if got := (&pace{rowStep: row}).nextStep(begin); got != want {
			t.Errorf("the first fetch asks for %d where the row's step is %d, want got = %v", got, row, want)
		}
	}
}

// Skipped ids were not used: without them the range would have lasted longer.
func TestPaceIgnoresSkippedIDs(t *testing.T) {
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		issued, skipped int64
		lasted          time.Duration
		want            int64
	}{
		{1000, 0, time.Minute, 4000},
		{500, 500, time.Minute, 4000},
		{50, 950, time.Minute, 2000},
		{10, 990, time.Minute, 1000},
		{0, 1000, time.Minute, 1000},
		{0, 1 << 62, time.Second, 1000},
		{1, 1, 20 * time.Minute, 1000},
	} {
		p := pace{rowStep: 1000}
		p.recordFetch(1000, time.Millisecond, begin)
		p.measure(5000, begin.Add(-time.Second))
		p.recordFetch(2000, time.Millisecond, begin)
		p.measure(5000+c.issued, begin.Add(c.lasted))
		p.skipped = c.skipped
		if got := p.nextStep(begin.Add(c.lasted)); got != c.want {
			t.Errorf("%+v: nextStep(begin.Add(c.lasted)) = %d, want %v", c, got, c.want)
		}
	}
}

func TestPaceReportsOutlivedFirstRange(t *testing.T) {
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	p := pace{rowStep: 1000}
	if p.outlivedFirst(begin) {
		t.Error("before the first range: outlivedFirst() = true, want false")
	}
	p.recordFetch(16, 0, begin)
	if p.outlivedFirst(begin.Add(firstLife)) || !p.outlivedFirst(begin.Add(firstLife+1)) {
		t.Errorf("outlivedFirst() does not change after %v, want false until then and true later", firstLife)
	}
	p.recordFetch(1000, 0, begin)
	if p.outlivedFirst(begin.Add(time.Hour)) {
		t.Error("after the second range: outlivedFirst() = true, want false")
	}
}

func TestPaceMeasuresUseDuringFetch(t *testing.T) {
	var p pace
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	if p.measure(0, now); p.usedDuringFetch() != 0 {
		t.Errorf("usedDuringFetch() before any use = %v, want 0", p.usedDuringFetch())
	}
	p.recordFetch(1, 20*time.Millisecond, now)
	now = now.Add(time.Second)
	p.measure(10_000, now)
	if got := p.usedDuringFetch(); got != 400 {
		t.Errorf("usedDuringFetch() at 10,000/s for 2 × 20 ms = %v, want 400", got)
	}
	p.measure(10_000, now) // no time has passed
	if got := p.usedDuringFetch(); got != 400 {
		t.Errorf("usedDuringFetch() when measured twice = %v, want 400", got)
	}
	now = now.Add(time.Second)
	p.measure(10_000, now)
	if got := p.usedDuringFetch(); got != 200 {
		t.Errorf("usedDuringFetch() after an idle time = %v, want 200", got)
	}
	p.measure(1e15, now.Add(time.Nanosecond))
	if got := p.usedDuringFetch(); got != maxStep {
		t.Errorf("usedDuringFetch() in an endless burst = %v, want %v", got, maxStep)
	}
}
