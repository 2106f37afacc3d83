package control

import "math/rand/v2"

// maxMargin is 32 times the largest range that a process fetches.
const maxMargin = 1 << 36

// Margin returns the number of ids by which to move a row up if ids above it may be in use without any trace,
// as after a fail-over that lost the last fetches. left is the number of ids that the smallest key column has
// left. The result is random: if a move was lost, a second move from the same id leads to another id. The
// result is at most a quarter of left, and 0 if left is below 8.
func Margin(left int64) int64 { return MarginBy(left, rand.Int64N) }

// MarginBy returns a margin from another source of random numbers than Margin, for simulations.
func MarginBy(left int64, random func(int64) int64) int64 {
	m := min(maxMargin, max(left/64, min(left/8, 4_000_000)))
	if m < 1 {
		return 0
	}
	return m + random(m)
}
