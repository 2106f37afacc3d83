package snowflake

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// A quiet table's ids spread evenly over any number of shards, in any rhythm of its
// rows: a chi-square test of id mod n for n = 2 … 1024. Its time and its
// random numbers are fixed, so its result is too.
func TestQuietTablesSpreadEvenly(t *testing.T) {
	const ids = 10_000
	random := rand.New(rand.NewPCG(1, 2))
	for name, gap := range map[string]func() time.Duration{
		"at random":    func() time.Duration { return time.Duration(2+random.ExpFloat64()*300) * time.Millisecond },
		"every 2 ms":   func() time.Duration { return 2 * time.Millisecond },
		"every 10 ms":  func() time.Duration { return 10 * time.Millisecond },
		"every 987 ms": func() time.Duration { return 987 * time.Millisecond }, // a Fibonacci number
		"every second": func() time.Duration { return time.Second },
		"every 1.024s": func() time.Duration { return 1024 * time.Millisecond },
		"every minute": func() time.Duration { return time.Minute },
	} {
		bubble(t, today, func(t *testing.T) {
			g := new(registry).generator(t, Leaf, 1, time.Hour)
			drawn := make([]int64, ids)
			for i := range drawn {
				time.Sleep(gap())
				drawn[i] = next(t, g, 1)
			}
			for n := int64(2); n <= 1024; n++ {
				counts := make([]int, n)
				for _, id := range drawn {
					counts[id%n]++
				}
				// A limit of five deviations suits ten thousand tests.
				if z := deviations(counts, ids); z > 5 {
					t.Errorf("%s: ids modulo %d: chi-square is %.1f deviations too high, want at most 5", name, n, z)
				}
			}
		})
	}
}

// deviations returns how far chi-square is above its mean, in standard deviations, by
// Wilson and Hilferty's approximation.
func deviations(counts []int, all int) float64 {
	expected := float64(all) / float64(len(counts))
	chi2 := 0.0
	for _, n := range counts {
		d := float64(n) - expected
		chi2 += d * d / expected
	}
	free := float64(len(counts) - 1)
	return (math.Cbrt(chi2/free) - (1 - 2/(9*free))) / math.Sqrt(2/(9*free))
}

// A block of any size fits at its offset, and every offset occurs.
func TestOffsetFitsTheBlock(t *testing.T) {
	for _, room := range []int64{1, 2, 3, 16, 4096, 1 << 22} {
		reached := make(map[int64]bool)
		for ms := range int64(100_000) {
			o := startOffset(ms, room)
			if o < 0 || o >= room {
				t.Fatalf("offset %d of %d at %d, want o at least 0 and o below %v", o, room, ms, room)
			}
			reached[o] = true
		}
		if want := min(room, 95_000); int64(len(reached)) < want {
			t.Errorf("%d of %d offsets in 100,000 ms, want int64(len(reached)) at least %v", len(reached), room, want)
		}
	}
}
