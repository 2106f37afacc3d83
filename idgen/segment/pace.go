package segment

import "time"

// Leaf's step: a segment that lasted less than shortLife was too small, one that
// lasted more than longLife too large.
const (
	shortLife = 15 * time.Minute
	longLife  = 30 * time.Minute
	maxStep   = 1_000_000
)

// Waits between attempts to reach a store that is away: doubled from minPause to
// maxPause, each shortened by up to a half at random.
const (
	minPause = 50 * time.Millisecond
	maxPause = time.Second
)

// pace decides how many ids to fetch, and how early.
type pace struct {
	step    int64     // of the last fetch
	row     int64     // the row's step, as last read
	fetched time.Time // when the last range came

	delay time.Duration // what a fetch takes
	rate  float64       // ids used per nanosecond
	used  int64         // ids used in all at the time
	at    time.Time     // of the last measurement
}

// next returns the step of a fetch that starts now. The row's step is the store's
// floor, so 1 asks for just that.
func (p *pace) next(now time.Time) int64 {
	switch lasted := now.Sub(p.fetched); {
	case p.fetched.IsZero():
		return 1
	case lasted < shortLife:
		return max(1, min(2*p.step, max(maxStep, p.row)))
	case lasted > longLife:
		return max(1, p.step/2, p.row)
	}
	return max(1, p.step)
}

// arrived notes a range that was asked for with step and came now.
func (p *pace) arrived(step, row int64, took time.Duration, now time.Time) {
	p.step, p.row, p.fetched = max(step, row), row, now
	p.delay = max(took, (7*p.delay+took)/8)
}

// measure notes that used ids have been used until now. The rate rises at once and
// sinks by halves: being early costs little, being late makes callers wait.
func (p *pace) measure(used int64, now time.Time) {
	if p.at.IsZero() {
		p.used, p.at = used, now
	}
	if d := now.Sub(p.at); d > 0 {
		rate := float64(used-p.used) / float64(d)
		p.rate = max(rate, (p.rate+rate)/2)
		p.used, p.at = used, now
	}
}

// need returns how many ids are used up while a fetch is under way, doubled for
// safety.
func (p *pace) need() int64 {
	return int64(min(2*p.rate*float64(p.delay), maxStep))
}
