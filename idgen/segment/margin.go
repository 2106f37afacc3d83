package segment

import "math/rand/v2"

// maxMargin is 32 times the largest range that a process fetches.
const maxMargin = 1 << 36

// Margin returns how many ids a row is moved up by if ids above it may be in use though nothing shows them, as after a
// fail-over that lost the last fetches. left is how many ids the smallest key column has left. The number is random, so that two
// moves from one place, of which one was lost, do not lead to one place. It is at most a quarter of left.
func Margin(left int64) int64 { return margin(left, rand.Int64N) }

func margin(left int64, random func(int64) int64) int64 {
	m := min(maxMargin, max(left/64, min(left/8, 4_000_000)))
	if m < 1 {
		return 0
	}
	return m + random(m)
}
