package control

import "math/rand/v2"

// maxMargin is 32 times the largest range that a process fetches.
const maxMargin = 1 << 36

// Margin returns the number of ids by which to raise a row's next id after a fail-over that may have lost the last
// fetches: ids from the next id on may be in use. left is the number of ids that are left in the smallest key
// column. The result is random, so that a second fail-over does not lead to the same ids if the first raise was
// lost. It is at most a quarter of left, and 0 if left is below 8.
func Margin(left int64) int64 { return MarginBy(left, rand.Int64N) }

// MarginBy returns a margin from another source of random numbers than Margin, for simulations.
func MarginBy(left int64, random func(int64) int64) int64 {
	m := min(maxMargin, max(left/64, min(left/8, 4_000_000)))
	if m < 1 {
		return 0
	}
	return m + random(m)
}
