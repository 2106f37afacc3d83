package idcheck

import (
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"sync"
	"testing"
)

func TestReportCountsDuplicates(t *testing.T) {
	type block struct {
		first int64
		n     int
	}
	tests := []struct {
		name   string
		blocks []block
		want   Report
	}{
		{"none", nil, Report{}},
		{"consecutive", []block{{1, 2}, {3, 1}}, Report{Issued: 3, Min: 1, Max: 3}},
		{"gap", []block{{10, 1}, {1, 2}}, Report{Issued: 3, Min: 1, Max: 10, Missing: 7}},
		{"twice", []block{{5, 1}, {5, 1}}, Report{Issued: 2, Duplicates: 1, Examples: []int64{5}, Min: 5, Max: 5}},
		{"three times", []block{{5, 1}, {5, 1}, {5, 1}}, Report{Issued: 3, Duplicates: 2, Examples: []int64{5}, Min: 5, Max: 5}},
		{"overlap", []block{{1, 10}, {8, 10}}, Report{Issued: 20, Duplicates: 3, Examples: []int64{8, 9, 10}, Min: 1, Max: 17}},
		{"within", []block{{1, 10}, {3, 2}, {20, 1}}, Report{Issued: 13, Duplicates: 2, Examples: []int64{3, 4}, Min: 1, Max: 20, Missing: 9}},
		{"below one", []block{{-1, 4}}, Report{Issued: 4, Invalid: 2, Min: -1, Max: 2}},
		{"the last id", []block{{math.MaxInt64, 1}, {math.MaxInt64 - 1, 1}}, Report{Issued: 2, Min: math.MaxInt64 - 1, Max: math.MaxInt64}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var c Collector
			for i, b := range tt.blocks {
				c.Recorder().Add(b.first, b.n)
				if i == 0 {
					c.Recorder() // stays empty
				}
			}
			if got := c.Report(); !reflect.DeepEqual(got, tt.want) {
				t.Errorf("got  %+v\nwant %+v", got, tt.want)
			}
		})
	}
}

// TestReportMatchesPlainCounting compares reports with plain counting, on random blocks.
func TestReportMatchesPlainCounting(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		var c Collector
		times := map[int64]int64{}
		var issued int64
		for range rnd.IntN(4) + 1 {
			r := c.Recorder()
			for range rnd.IntN(20) {
				first, n := rnd.Int64N(200)+1, rnd.IntN(9)+1
				r.Add(first, n)
				for id := first; id < first+int64(n); id++ {
					times[id]++
					issued++
				}
			}
		}
		rep := c.Report()
		if rep.Issued != issued || rep.Duplicates != issued-int64(len(times)) {
			t.Fatalf("issued %d, duplicates %d, want %d and %d", rep.Issued, rep.Duplicates, issued, issued-int64(len(times)))
		}
		if issued > 0 && rep.Missing != rep.Max-rep.Min+1-int64(len(times)) {
			t.Fatalf("Missing = %d, want %d for %d different ids in %d … %d", rep.Missing, rep.Max-rep.Min+1-int64(len(times)), len(times), rep.Min, rep.Max)
		}
		for _, id := range rep.Examples {
			if times[id] < 2 {
				t.Fatalf("example %d was issued %d times, want at least 2", id, times[id])
			}
		}
	}
}

func TestAddLinesLeavesOutTheUnfinishedOne(t *testing.T) {
	var c Collector
	if err := c.Recorder().AddLines(strings.NewReader("7\n10 5\n8\n12345")); err != nil {
		t.Fatal(err)
	}
	if got, want := c.Report(), (Report{Issued: 7, Min: 7, Max: 14, Missing: 1}); !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	for _, bad := range []string{"x\n", "\n", "1 2 3\n", "1 0\n", "9223372036854775807 2\n"} {
		if err := c.Recorder().AddLines(strings.NewReader(bad)); err == nil {
			t.Errorf("AddLines(%q) = nil, want an error", bad)
		}
	}
}

func TestConcurrentRecordersLoseNothing(t *testing.T) {
	var c Collector
	var wg sync.WaitGroup
	for g := range int64(16) {
		wg.Go(func() {
			r := c.Recorder()
			for i := range int64(10_000) {
				r.Add(1+g+16*i, 1) // interleaved, so no ranges can be merged
			}
		})
	}
	wg.Wait()
	if rep := c.Verify(t); rep.Issued != 160_000 || rep.Missing != 0 {
		t.Errorf("Verify() = %+v, want 160,000 ids and none missing", rep)
	}
}

func TestVerifyFails(t *testing.T) {
	var c Collector
	c.Recorder().Add(0, 3)
	c.Recorder().Add(2, 1)
	judge := &fakeTB{TB: t}
	c.Verify(judge)
	if judge.errors != 2 {
		t.Errorf("%d complaints, want one of a duplicate and one of an id below 1", judge.errors)
	}
}

type fakeTB struct {
	testing.TB
	errors int
}

func (f *fakeTB) Helper()               {}
func (f *fakeTB) Errorf(string, ...any) { f.errors++ }

func BenchmarkReport(b *testing.B) {
	var c Collector
	r := c.Recorder()
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 4_000_000 {
		r.Add(rnd.Int64N(1<<62)+1, 1)
	}
	for b.Loop() {
		c.Report()
	}
}
