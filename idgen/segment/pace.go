package segment

import "time"

// The first range of a generator holds at most firstRange ids. The next one is fetched when half of them are
// used, or at the first call after firstLife.
const (
	firstRange = 16
	firstLife  = 5 * time.Second
)

// Leaf's rule for the step: a segment that lasted less than shortLife was too small, and one that lasted more
// than longLife was too large. A row's step that was read longer than longLife ago is read again.
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
	row    int64     // the row's step, as last read
	looked time.Time // when the row was last read; zero if never

	begun   bool      // a range has arrived
	step    int64     // step of the last fetch; 0 if the next one takes the row's
	fetched time.Time // when the range of the last fetch arrived
	skipped int64     // ids discarded since then
	before  int64     // ids used before then

	delay time.Duration // smoothed duration of a fetch
	rate  float64       // ids used per nanosecond
	used  int64         // total number of ids used at that time
	at    time.Time     // time of the last measurement
}

// known reports whether the row's step is known and recent.
func (p *pace) known(now time.Time) bool { return p.row > 0 && now.Sub(p.looked) <= longLife }

// looks records the row's step.
func (p *pace) looks(row int64, now time.Time) { p.row, p.looked = row, now }

// next returns the step of a fetch that starts now.
func (p *pace) next(now time.Time) int64 {
	if !p.begun {
		return min(p.row, firstRange)
	}
	lasted := now.Sub(p.fetched)
	if p.skipped > 0 { // without skipped ids the range would have lasted longer
		issued := float64(max(p.used-p.before, 1))
		lasted = time.Duration(min(float64(lasted)*(issued+float64(p.skipped))/issued, float64(2*longLife)))
	}
	switch {
	case lasted < shortLife:
		return max(p.row, min(2*p.step, maxStep))
	case lasted > longLife:
		return max(p.row, p.step/2)
	}
	return max(p.row, p.step)
}

// arrived records a range that was requested with step and arrived now.
func (p *pace) arrived(step int64, took time.Duration, now time.Time) {
	if !p.begun {
		step = 0
	}
	p.begun, p.step, p.fetched, p.skipped, p.before = true, step, now, 0, p.used
	p.delay = max(took, (7*p.delay+took)/8)
}

// small reports whether the first range has been in use for so long that the program needs a full range.
func (p *pace) small(now time.Time) bool {
	return p.step == 0 && !p.fetched.IsZero() && now.Sub(p.fetched) > firstLife
}

// measure records that used ids have been used until now. The rate rises immediately and falls by halves: an
// early fetch costs little, a late one makes callers wait.
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

// need returns the number of ids that are used during a fetch, doubled for safety.
func (p *pace) need() int64 {
	return int64(min(2*p.rate*float64(p.delay), maxStep))
}
