package segment

import "time"

// A generator's first range holds firstRange ids at most. The next one is fetched when
// half are gone, or at the first call after firstLife.
const (
	firstRange = 16
	firstLife  = 5 * time.Second
)

// Leaf's step: a segment that lasted less than shortLife was too small, one that
// lasted more than longLife too large. Longer than longLife the row's step is not
// believed without another look.
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
	row    int64     // the row's step, as last read
	looked time.Time // when the row was last read; zero: never

	begun   bool      // a range has come
	step    int64     // of the last fetch; 0: the next one takes the row's
	fetched time.Time // when its range came
	skipped int64     // ids given up since then
	before  int64     // ids used until then

	delay time.Duration // what a fetch takes
	rate  float64       // ids used per nanosecond
	used  int64         // ids used in all at the time
	at    time.Time     // of the last measurement
}

// known reports whether the row's step can be relied on.
func (p *pace) known(now time.Time) bool { return p.row > 0 && now.Sub(p.looked) <= longLife }

// looks notes the row's step.
func (p *pace) looks(row int64, now time.Time) { p.row, p.looked = row, now }

// next returns the step of a fetch that starts now.
func (p *pace) next(now time.Time) int64 {
	if !p.begun {
		return min(p.row, firstRange)
	}
	lasted := now.Sub(p.fetched)
	if p.skipped > 0 { // without them the range would have lasted longer
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

// arrived notes a range that was asked for with step and came now.
func (p *pace) arrived(step int64, took time.Duration, now time.Time) {
	if !p.begun {
		step = 0
	}
	p.begun, p.step, p.fetched, p.skipped, p.before = true, step, now, 0, p.used
	p.delay = max(took, (7*p.delay+took)/8)
}

// small reports whether the first range has been in use for so long that a program
// that goes on needs a real one.
func (p *pace) small(now time.Time) bool {
	return p.step == 0 && !p.fetched.IsZero() && now.Sub(p.fetched) > firstLife
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
