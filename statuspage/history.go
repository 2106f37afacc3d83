package statuspage

import (
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/leafsql/leafsql/driver"
)

const (
	noteInterval = 2 * time.Second // between two notes
	historySpan  = 2 * time.Minute // time that the charts show
	rateWindow   = 10 * time.Second
)

// A history records how many ids of each tag were issued. A note is such a record at one time: the time of a
// request, or a time at which Page.Run takes a note.
type history struct {
	mu    sync.Mutex
	notes []note // notes of the last historySpan and a few older ones, oldest first
}

type note struct {
	at  time.Time
	ids map[string]int64
	all int64 // ids of all tags since the first note; the ids of a tag are counted after its first note
}

// note records the current numbers, unless the last note is younger than noteInterval.
func (h *history) note(now time.Time, tags []driver.TagStats) {
	h.mu.Lock()
	defer h.mu.Unlock()
	old := 0
	for old < len(h.notes) && now.Sub(h.notes[old].at) > historySpan {
		old++
	}
	// With very many tags or requests, fewer notes are kept, and the charts cover less time.
	old = max(old, len(h.notes)+1-min(int(2*historySpan/noteInterval), max(6, 100_000/max(1, len(tags)))))
	h.notes = append(h.notes[:0:0], h.notes[old:]...)

	pause := noteInterval / 2
	if len(h.notes) == 1 {
		pause = firstLook
	}
	if len(h.notes) > 0 && now.Sub(h.notes[len(h.notes)-1].at) < pause {
		return
	}
	n := note{at: now, ids: make(map[string]int64, len(tags))}
	var before note
	if len(h.notes) > 0 {
		before = h.notes[len(h.notes)-1]
		n.all = before.all
	}
	for _, t := range tags {
		n.ids[t.Tag] = t.IDs
		if ids, ok := before.ids[t.Tag]; ok {
			n.all += max(0, t.IDs-ids)
		}
	}
	h.notes = append(h.notes, n)
}

// recent reports whether rates can be computed.
func (h *history) recent() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.notes) > 1
}

// total is used as a tag's name for the sum of all tags.
const total = "\x00"

func (n note) idsOf(tag string) (ids int64, ok bool) {
	if tag == total {
		return n.all, true
	}
	ids, ok = n.ids[tag]
	return ids, ok
}

// rate returns how many ids a second were issued recently.
func (h *history) rate(tag string) float64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	last := len(h.notes) - 1
	if last < 1 {
		return 0
	}
	from := last - 1
	for from > 0 && h.notes[last].at.Sub(h.notes[from].at) < rateWindow {
		if _, ok := h.notes[from-1].idsOf(tag); !ok {
			break
		}
		from--
	}
	return rate(h.notes[from], h.notes[last], tag)
}

func rate(a, b note, tag string) float64 {
	was, ok := a.idsOf(tag)
	if !ok { // the tag is new, or has a new name: its ids may be older than a
		return 0
	}
	ids, _ := b.idsOf(tag)
	// The number of ids starts at 0 again for a tag that was closed and opened again.
	return max(0, float64(ids-was)/b.at.Sub(a.at).Seconds())
}

// busy returns how many ids were issued between the first note with the tag and the last note, by tag.
func (h *history) busy() map[string]int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.notes) == 0 {
		return nil
	}
	last := h.notes[len(h.notes)-1]
	issued := make(map[string]int64, len(last.ids))
	for tag, ids := range last.ids {
		for _, n := range h.notes {
			if was, ok := n.ids[tag]; ok {
				issued[tag] = max(0, ids-was)
				break
			}
		}
	}
	return issued
}

// A chart is a line of the ids issued per second in the last historySpan.
type chart struct {
	Width, Height int
	Line          string // SVG path; empty before there are two notes
	Most          float64
}

// Top returns the label of the upper edge.
func (c chart) Top() string { return formatRate(c.Most) }

func (h *history) chart(tag string, width, height int) chart {
	h.mu.Lock()
	defer h.mu.Unlock()
	c := chart{Width: width, Height: height}
	n := len(h.notes)
	if n < 2 {
		return c
	}
	rates := make([]float64, 0, n-1)
	for i := range n - 1 {
		rates = append(rates, rate(h.notes[i], h.notes[i+1], tag))
		c.Most = max(c.Most, rates[i])
	}
	x := func(at time.Time) float64 {
		ago := h.notes[n-1].at.Sub(at).Seconds() / historySpan.Seconds()
		return math.Round(max(0, 1-ago) * float64(width))
	}
	y := func(r float64) float64 {
		const border = 1 // width of the line
		return math.Round(float64(height) - border - r/max(c.Most, 1e-9)*float64(height-2*border))
	}
	// The lines that close the area of the chart are outside its visible part.
	line := fmt.Appendf(nil, "M%g %d", x(h.notes[0].at), height+2)
	was := math.NaN()
	for i, r := range rates { // each rate is drawn up to the next note
		if at := y(r); at != was {
			if i > 0 {
				line = fmt.Appendf(line, "H%g", x(h.notes[i].at))
			}
			line = fmt.Appendf(line, "V%g", at)
			was = at
		}
	}
	c.Line = string(fmt.Appendf(line, "H%dV%d", width+2, height+2))
	return c
}
