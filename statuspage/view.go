package statuspage

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/leafsql/leafsql/driver"
	"github.com/leafsql/leafsql/idgen/snowflake"
)

// A view is what the page shows, as it shows it.
type view struct {
	Title  string
	Now    string
	Err    error // why nothing can be told
	Rate   string
	Chart  chart
	Wrong  []wrong
	Worker *workerView
	Tags   []tagView
	Hidden int // tags that are not shown
	Filter string
	Tables []driver.TableStats
	IDs    int64 // issued, of all tags

	ID      string // asked to be decoded
	Decoded *decoded
	NoID    error // why it cannot be
	Layout  snowflake.Layout

	now time.Time
}

// A wrong is something that somebody should look at.
type wrong struct{ What, Why string }

type tagView struct {
	driver.TagStats
	Rate  string
	Chart chart
	Used  int64 // of Current
	Size  int64
}

// Percent is how much of the current range is used.
func (t tagView) Percent() int64 {
	if t.Size == 0 {
		return 0
	}
	return int64(math.Round(100 * float64(t.Used) / float64(t.Size)))
}

type workerView struct {
	driver.WorkerStats
	Until string // how long ids can be made, "" where that is not known
}

// most is how many tags and tables one page shows.
const most = 500

// refusedLately is how long a refused statement is shown as something wrong.
const refusedLately = 5 * time.Minute

func newView(title string, s driver.Stats, err error, h *history, now time.Time) *view {
	v := &view{
		Title: title, Now: stamp(now), Err: err, Rate: perSecond(h.rate(total)), Chart: h.chart(total, 600, 80),
		Layout: snowflake.Leaf, now: now,
	}
	if w := s.Worker; w != nil {
		v.Layout = w.Layout
		v.Worker = &workerView{WorkerStats: *w}
		if !w.Limit.IsZero() {
			v.Worker.Until = fmt.Sprintf("%s (%s)", stamp(w.Limit), relative(w.Limit, now))
		}
		if w.Err != nil {
			v.Wrong = append(v.Wrong, wrong{"Worker id", w.Err.Error()})
		}
	}
	for _, t := range s.Tags {
		v.IDs += t.IDs
		size := t.Current.End - t.Current.Start
		v.Tags = append(v.Tags, tagView{t, perSecond(h.rate(t.Tag)), h.chart(t.Tag, 120, 28), size - t.Left, size})
		if t.Err != nil {
			v.Wrong = append(v.Wrong, wrong{fmt.Sprintf("Tag %s, %s ids left", t.Tag, number(t.Remaining)), t.Err.Error()})
		}
	}
	for _, t := range s.Tables {
		if now.Sub(t.LastRefused) < refusedLately {
			name := "Statements whose table is not known"
			if t.Name != "" {
				name = "Table " + t.Name
			}
			v.Wrong = append(v.Wrong, wrong{fmt.Sprintf("%s, refused %s", name, relative(t.LastRefused, now)), t.LastRefusal})
		}
	}
	v.Tables = s.Tables
	return v
}

// filter keeps the tags and tables whose name holds part, and no more than a
// page can bear.
func (v *view) filter(part string) {
	v.Filter = part
	tags, tables := v.Tags, v.Tables
	v.Tags, v.Tables = nil, nil
	for _, t := range tags {
		if len(v.Tags) < most && holds(t.Tag, part) {
			v.Tags = append(v.Tags, t)
		}
	}
	for _, t := range tables {
		if len(v.Tables) < most && holds(t.Name, part) {
			v.Tables = append(v.Tables, t)
		}
	}
	v.Hidden = len(tags) - len(v.Tags) + len(tables) - len(v.Tables)
	if len(v.Wrong) > most {
		v.Wrong = v.Wrong[:most]
	}
}

func holds(name, part string) bool {
	return strings.Contains(strings.ToLower(name), strings.ToLower(part))
}

// decoded is what a snowflake says.
type decoded struct {
	snowflake.Parts
	Time string
}

func (v *view) decode(id string, w *driver.WorkerStats) {
	v.ID = strings.TrimSpace(id)
	if v.ID == "" {
		return
	}
	n, err := strconv.ParseInt(v.ID, 10, 64)
	if err != nil {
		v.NoID = fmt.Errorf("this is not a number from 1 to %d", int64(math.MaxInt64))
		return
	}
	parts, err := v.Layout.Decompose(n)
	if err != nil {
		v.NoID = fmt.Errorf("an id of the layout %s cannot be %d", v.Layout, n)
		return
	}
	v.Decoded = &decoded{parts, stamp(parts.Time)}
}

// Number writes thousands apart.
func (v *view) Number(n int64) string { return number(n) }

// Ago says how long ago something was.
func (v *view) Ago(t time.Time) string { return relative(t, v.now) }

// Stamp writes a time.
func (v *view) Stamp(t time.Time) string { return stamp(t) }

// Offset says how far the clocks are apart.
func (w *workerView) Offset() string {
	switch d := w.ClockOffset.Round(time.Millisecond); {
	case d > 0:
		return d.String() + " ahead of the registry's"
	case d < 0:
		return (-d).String() + " behind the registry's"
	}
	return "no difference known"
}

func number(n int64) string {
	s := strconv.FormatInt(n, 10)
	sign := ""
	if n < 0 {
		sign, s = "-", s[1:]
	}
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return sign + s
}

func perSecond(rate float64) string {
	if rate > 0 && rate < 10 {
		return strconv.FormatFloat(rate, 'f', 1, 64)
	}
	return number(int64(math.Round(rate)))
}

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05.000 MST") }

func relative(t, now time.Time) string {
	d := now.Sub(t)
	unit := time.Second
	switch {
	case d.Abs() > 2*time.Hour:
		unit = time.Hour
	case d.Abs() > 2*time.Minute:
		unit = time.Minute
	}
	text := strconv.FormatInt(int64(d.Abs()/unit), 10) + map[time.Duration]string{time.Second: " s", time.Minute: " min", time.Hour: " h"}[unit]
	if d < 0 {
		return "in " + text
	}
	return text + " ago"
}
