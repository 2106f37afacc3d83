package statuspage

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/leafsql/leafsql/driver"
	"github.com/leafsql/leafsql/idgen/snowflake"
	"github.com/leafsql/leafsql/internal/chinese"
	"github.com/leafsql/leafsql/internal/pageextra"
	"github.com/leafsql/leafsql/internal/version"
)

// A view has the contents of the page, formatted for display.
type view struct {
	Title   string
	About   string // version, uptime, source of the ids
	Links   []pageextra.Link
	Now     string
	Err     error // error of reading the statistics
	Rate    string
	More    pageextra.More
	Chart   chart
	Wrong   []problem
	Looks   int // number of problems that need attention
	Workers []workerView
	Tags    []tagView
	Hidden  int // tags that are not shown
	Filter  string
	Tables  []tableView
	IDs     int64 // issued ids of all tags

	ID      string // id to decode
	Decoded *decoded
	NoID    string // the reason why ID cannot be decoded
	Layout  snowflake.Layout
	Mixed   bool // the pools have several layouts, so an id cannot be decoded

	texts chinese.Texts
	now   time.Time
}

// A problem needs attention.
type problem struct{ What, Why string }

type tagView struct {
	driver.TagStats
	Rate   string
	Chart  chart
	Used   int64 // used ids of Current
	Size   int64
	Listed bool // Err is shown at the top of the page
}

type tableView struct {
	driver.TableStats
	Listed bool // LastRefusal is shown at the top of the page
}

// Percent returns the used part of the current range, 0 … 100.
func (t tagView) Percent() int64 {
	if t.Size == 0 {
		return 0
	}
	return int64(math.Round(100 * float64(t.Used) / float64(t.Size)))
}

type workerView struct {
	lease
	From   string // time from which ids can be issued, "" if it has passed or is unknown
	Until  string // time until which ids can be issued, "" if unknown
	Offset string // difference of the clocks
}

// maxListed is the largest number of problems shown above the tags. The row of each tag also shows its problem.
const maxListed = 10

// maxCharts is the largest number of tags with a chart. Tags with errors come first, then the busiest
// tags.
const maxCharts = 50

// maxRows is the largest number of tags, and of tables, on one page.
const maxRows = 500

// refusalAge is the time for which a refused statement is shown as a problem.
const refusalAge = 5 * time.Minute

func newView(p *Page, texts chinese.Texts, s driver.Stats, pools []pool, err error, now time.Time) *view {
	say := texts.Sprintf
	h := &p.history
	v := &view{
		Title: texts.Text(p.title), About: "leafsql " + version.Current(), Links: p.Links, Now: formatTime(now), Err: err, Rate: formatRate(h.rate(total)), Chart: h.chart(total, 600, 80),
		Layout: snowflake.Leaf, texts: texts, now: now,
	}
	if p.Host != "" {
		v.Title = say("%s on %s", v.Title, p.Host)
	}
	if !p.began.IsZero() {
		v.About += say(", up for %s", formatDuration(texts, now.Sub(p.began)))
	}
	if p.Server != "" {
		v.About += say(", ids of %s", p.Server)
	}
	if p.More != nil {
		v.More = p.More()
		for _, why := range v.More.Wrong {
			v.Wrong = append(v.Wrong, problem{texts.Text(v.More.Title), texts.Text(why)})
		}
	}
	for _, pool := range pools {
		if pool.err != nil && err == nil { // otherwise err has the errors of all pools
			v.Wrong = append(v.Wrong, problem{say("Pool %s", pool.name), pool.err.Error()})
		}
	}
	for i, w := range leases(s, pools) {
		if i == 0 {
			v.Layout = w.Layout
		}
		v.Mixed = v.Mixed || w.Layout != v.Layout
		what, shown := say("Worker id"), workerView{lease: w, Offset: formatOffset(texts, w.ClockOffset)}
		if w.Pools != "" {
			what += " (" + w.Pools + ")"
		}
		if !w.Limit.IsZero() {
			shown.Until = formatTime(w.Limit) + " (" + formatRelative(texts, w.Limit, now) + ")"
		}
		if w.Phase != "holding" && w.Start.After(now) {
			shown.From = formatTime(w.Start) + " (" + formatRelative(texts, w.Start, now) + ")"
			v.Wrong = append(v.Wrong, problem{what, say("no snowflakes until %s, because other processes may issue ids up to then; before a first roll-out, leafsql init -new-registry prevents this wait", shown.From)})
		} else if w.Err != nil {
			v.Wrong = append(v.Wrong, problem{what, w.Err.Error()})
		}
		v.Workers = append(v.Workers, shown)
	}
	issued, tags := h.busy(), slices.Clone(s.Tags)
	slices.SortStableFunc(tags, func(a, b driver.TagStats) int {
		switch {
		case a.Err != nil && b.Err == nil:
			return -1
		case a.Err == nil && b.Err != nil:
			return 1
		}
		return cmp.Compare(issued[b.Tag], issued[a.Tag])
	})
	for _, t := range tags {
		v.IDs += t.IDs
		size := t.Current.End - t.Current.Start
		tag := tagView{TagStats: t, Rate: formatRate(h.rate(t.Tag)), Used: size - t.Left, Size: size}
		if t.Err != nil {
			v.Wrong = append(v.Wrong, problem{say("Tag %s, %s ids left", t.Tag, formatNumber(t.Remaining)), t.Err.Error()})
			tag.Listed = len(v.Wrong) <= maxListed
		}
		v.Tags = append(v.Tags, tag)
	}
	for _, t := range s.Tables {
		table := tableView{TableStats: t}
		if now.Sub(t.LastRefused) < refusalAge {
			name := say("Statements whose table is not known")
			if t.Name != "" {
				name = say("Table %s", t.Name)
			}
			v.Wrong = append(v.Wrong, problem{say("%s, refused %s", name, formatRelative(texts, t.LastRefused, now)), t.LastRefusal})
			table.Listed = len(v.Wrong) <= maxListed
		}
		v.Tables = append(v.Tables, table)
	}
	v.Looks = len(v.Wrong)
	v.Wrong = v.Wrong[:min(v.Looks, maxListed)]
	return v
}

// filter removes all tags and tables except those with part in their names. It keeps at most maxRows tags and
// maxRows tables.
func (v *view) filter(part string, h *history) {
	v.Filter = part
	tags, tables := v.Tags, v.Tables
	v.Tags, v.Tables = nil, nil
	for _, t := range tags {
		if len(v.Tags) < maxRows && containsFold(t.Tag, part) {
			if len(v.Tags) < maxCharts {
				t.Chart = h.chart(t.Tag, 120, 28)
			}
			v.Tags = append(v.Tags, t)
		}
	}
	for _, t := range tables {
		if len(v.Tables) < maxRows && containsFold(t.Name, part) {
			v.Tables = append(v.Tables, t)
		}
	}
	v.Hidden = len(tags) - len(v.Tags) + len(tables) - len(v.Tables)
}

func containsFold(name, part string) bool {
	return strings.Contains(strings.ToLower(name), strings.ToLower(part))
}

// decoded has the fields of a snowflake.
type decoded struct {
	snowflake.Parts
	Time string
}

func (v *view) decode(id string) {
	v.ID = strings.TrimSpace(id)
	if v.ID == "" {
		return
	}
	n, err := strconv.ParseInt(v.ID, 10, 64)
	if err != nil {
		v.NoID = v.texts.Sprintf("this is not a number from 1 to %d", int64(math.MaxInt64))
		return
	}
	parts, err := v.Layout.Decompose(n)
	if err != nil {
		v.NoID = v.texts.Sprintf("an id of the layout %s cannot be %d", v.Layout, n)
		return
	}
	v.Decoded = &decoded{parts, formatTime(parts.Time)}
}

// Others returns the number of problems that the page does not list.
func (v *view) Others() int { return v.Looks - len(v.Wrong) }

// Number formats n with separators of thousands.
func (v *view) Number(n int64) string { return formatNumber(n) }

// Ago formats how long ago t was.
func (v *view) Ago(t time.Time) string { return formatRelative(v.texts, t, v.now) }

// Stamp formats a time.
func (v *view) Stamp(t time.Time) string { return formatTime(t) }

func formatOffset(texts chinese.Texts, d time.Duration) string {
	switch d = d.Round(time.Millisecond); {
	case d > 0:
		return texts.Sprintf("%s ahead of the registry's", formatOffsetSize(texts, d))
	case d < 0:
		return texts.Sprintf("%s behind the registry's", formatOffsetSize(texts, -d))
	}
	return texts.Sprintf("no difference known")
}

// formatOffsetSize formats a difference of clocks, in milliseconds up to two seconds.
func formatOffsetSize(texts chinese.Texts, d time.Duration) string {
	if d < 2*time.Second {
		return texts.Sprintf("%d ms", d.Milliseconds())
	}
	return formatDuration(texts, d)
}

func formatNumber(n int64) string {
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

func formatRate(rate float64) string {
	if rate > 0 && rate < 10 {
		return strconv.FormatFloat(rate, 'f', 1, 64)
	}
	return formatNumber(int64(math.Round(rate)))
}

func formatTime(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05.000 MST") }

func formatRelative(texts chinese.Texts, t, now time.Time) string {
	if d := now.Sub(t); d >= 0 {
		return texts.Sprintf("%s ago", formatDuration(texts, d))
	}
	return texts.Sprintf("in %s", formatDuration(texts, t.Sub(now)))
}

// formatDuration formats a duration in its largest fitting unit.
func formatDuration(texts chinese.Texts, d time.Duration) string {
	switch {
	case d > 48*time.Hour:
		return texts.Sprintf("%d days", d/(24*time.Hour))
	case d > 2*time.Hour:
		return texts.Sprintf("%d h", d/time.Hour)
	case d > 2*time.Minute:
		return texts.Sprintf("%d min", d/time.Minute)
	}
	return texts.Sprintf("%d s", d/time.Second)
}
