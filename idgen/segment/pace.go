package segment

import "time"

// The first range of a generator holds at most firstRange ids. The next range is fetched when half of these ids are
// used, or at the first call after firstLife.
const (
	firstRange = 16
	firstLife  = 5 * time.Second
)

// Leaf's rule for the number of ids in a fetch: a range that lasted less than shortLife was too small, and a range that
// lasted more than longLife was too large. The step in the row is read again after longLife.
const (
	shortLife = 15 * time.Minute
	longLife  = 30 * time.Minute
	maxStep   = 1_000_000
)

// Pauses between attempts to reach an unavailable store: doubled from minPause to maxPause, each shortened by
// up to a half at random.
const (
	minPause = 50 * time.Millisecond
	maxPause = time.Second
)

// pace decides how many ids to fetch, and how early.
type pace struct {
	rowStep   int64     // the row's step, as last read
	rowReadAt time.Time // when the row was last read; zero if never

	hasRange   bool      // a range has arrived
	step       int64     // number of ids of the last fetch; 0 if the next fetch uses the row's step
	fetchedAt  time.Time // when the range of the last fetch arrived
	skipped    int64     // ids discarded since fetchedAt
	usedBefore int64     // ids used before fetchedAt

	fetchTime  time.Duration // smoothed duration of a fetch
	rate       float64       // ids used per nanosecond
	used       int64         // total number of ids used until measuredAt
	measuredAt time.Time     // time of the last measurement
}

// rowIsRecent reports whether the row's step is known and recent.
func (p *pace) rowIsRecent(now time.Time) bool {
	return p.rowStep > 0 && now.Sub(p.rowReadAt) <= longLife
}

// recordRow records the row's step.
func (p *pace) recordRow(step int64, now time.Time) { p.rowStep, p.rowReadAt = step, now }

// nextStep returns the number of ids for a fetch that starts now.
func (p *pace) nextStep(now time.Time) int64 {
	if !p.hasRange {
		return min(p.rowStep, firstRange)
	}
	lasted := now.Sub(p.fetchedAt)
	if p.skipped > 0 { // without skipped ids the range would have lasted longer
		issued := float64(max(p.used-p.usedBefore, 1))
		lasted = time.Duration(min(float64(lasted)*(issued+float64(p.skipped))/issued, float64(2*longLife)))
	}
	switch {
	case lasted < shortLife:
		return max(p.rowStep, min(2*p.step, maxStep))
	case lasted > longLife:
		return max(p.rowStep, p.step/2)
	}
	return max(p.rowStep, p.step)
}

// recordFetch records a range that was requested with step and arrived now.
func (p *pace) recordFetch(step int64, took time.Duration, now time.Time) {
	if !p.hasRange {
		step = 0
	}
	p.hasRange, p.step, p.fetchedAt, p.skipped, p.usedBefore = true, step, now, 0, p.used
	p.fetchTime = max(took, (7*p.fetchTime+took)/8)
}

// outlivedFirst reports whether the program has run for so long that the small first range is no longer enough.
func (p *pace) outlivedFirst(now time.Time) bool {
	return p.step == 0 && !p.fetchedAt.IsZero() && now.Sub(p.fetchedAt) > firstLife
}

// measure records that a total of used ids have been used until now. The rate rises immediately to a higher rate, but
// falls only halfway to a lower rate: an early fetch costs little, a late fetch makes callers wait.
func (p *pace) measure(used int64, now time.Time) {
	if p.measuredAt.IsZero() {
		p.used, p.measuredAt = used, now
	}
	if d := now.Sub(p.measuredAt); d > 0 {
		rate := float64(used-p.used) / float64(d)
		p.rate = max(rate, (p.rate+rate)/2)
		p.used, p.measuredAt = used, now
	}
}

// usedDuringFetch returns the number of ids that are used during a fetch, doubled for safety.
func (p *pace) usedDuringFetch() int64 {
	return int64(min(2*p.rate*float64(p.fetchTime), maxStep))
}
