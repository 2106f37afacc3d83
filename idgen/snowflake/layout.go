package snowflake

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Layout divides the 63 usable bits of an id into three fields, from the highest to the
// lowest: milliseconds since Epoch, worker id, sequence.
type Layout struct {
	Time     int   // bits of the milliseconds since Epoch
	Worker   int   // bits of the worker id
	Sequence int   // bits of the sequence within a millisecond
	Epoch    int64 // Unix ms

	// Datacenter is the number of upper Worker bits that name a data
	// centre. It only affects Parts.
	Datacenter int
}

// Leaf is Meituan's layout, with ids until 2080. Twitter's has the same bits, of
// which 5 name a data centre: "41-5+5-12". A Layout cannot express the layouts of Sonyflake
// (units of 10 ms), Baidu's uid-generator (units of a second) and Instagram (64 bits).
var Leaf = Layout{Time: 41, Worker: 10, Sequence: 12, Epoch: 1288834974657}

// Parts holds the fields of an id.
type Parts struct {
	Time       time.Time // to the millisecond
	Datacenter int       // the upper Layout.Datacenter bits of the worker id
	Worker     int       // the worker id; only its lower bits if the layout has data centres
	Sequence   int
}

// ParseLayout reads TIME-WORKER-SEQUENCE[@EPOCH] in bits, such as "41-10-12"
// or "41-5+5-12@2024-01-01": "5+5" is data centre and worker. The epoch is Unix
// ms, a date (UTC) or an RFC 3339 time; without one it is Leaf's. The result has passed
// Validate. Errors contain the text and a correct example.
func ParseLayout(text string) (Layout, error) {
	bits, epoch, hasEpoch := strings.Cut(text, "@")
	l := Layout{Epoch: Leaf.Epoch}
	parts := strings.Split(bits, "-")
	if len(parts) != 3 {
		return Layout{}, layoutError(text, errors.New("not of the form TIME-WORKER-SEQUENCE[@EPOCH]"))
	}
	dc, worker, hasDC := strings.Cut(parts[1], "+")
	if !hasDC {
		dc, worker = "0", dc
	}
	for _, f := range []struct {
		to   *int
		text string
	}{{&l.Time, parts[0]}, {&l.Datacenter, dc}, {&l.Worker, worker}, {&l.Sequence, parts[2]}} {
		n, err := strconv.ParseUint(f.text, 10, 6)
		if err != nil {
			return Layout{}, layoutError(text, fmt.Errorf("%q is not a number of bits", f.text))
		}
		*f.to = int(n)
	}
	l.Worker += l.Datacenter
	if hasEpoch {
		var err error
		if l.Epoch, err = parseEpoch(epoch); err != nil {
			return Layout{}, layoutError(text, err)
		}
	}
	if err := l.Validate(); err != nil {
		return Layout{}, err
	}
	return l, nil
}

func parseEpoch(text string) (int64, error) {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return n, nil
	}
	for _, form := range []string{time.DateOnly, time.RFC3339} {
		if t, err := time.Parse(form, text); err == nil {
			return t.UnixMilli(), nil
		}
	}
	return 0, fmt.Errorf("the epoch %q is neither a Unix time in ms nor a date such as 2024-01-01", text)
}

func layoutError(text string, cause error) error {
	return fmt.Errorf("leafsql: snowflake layout %q: %w; write for example 41-10-12@1288834974657", text, cause)
}

// Validate returns an error if ids of the layout cannot be composed or decomposed.
func (l Layout) Validate() error {
	var why string
	switch sum := l.Time + l.Worker + l.Sequence; {
	case l.Time < 30 || l.Time > 62:
		why = "the time must have 30 to 62 bits"
	case l.Worker < 0 || l.Worker > 22:
		why = "the worker id must have 0 to 22 bits"
	case l.Sequence < 1 || l.Sequence > 22:
		why = "the sequence must have 1 to 22 bits"
	case l.Datacenter < 0 || l.Datacenter > l.Worker:
		why = "the data centre has more bits than the worker id"
	case sum > 63:
		why = fmt.Sprintf("it has %d bits, at most 63 are possible", sum)
	case l.Epoch < 0 || l.Epoch > maxEpoch:
		why = "the epoch must be in the years 1970 to 2200"
	default:
		return nil
	}
	return layoutError(l.String(), errors.New(why))
}

// maxEpoch is the year 2200, in Unix ms. Added to 62 bits of time, it still fits an int64.
const maxEpoch = 7_258_118_400_000

// String returns the layout in the form that ParseLayout reads.
func (l Layout) String() string {
	worker := strconv.Itoa(l.Worker)
	if l.Datacenter > 0 {
		worker = fmt.Sprintf("%d+%d", l.Datacenter, l.Worker-l.Datacenter)
	}
	return fmt.Sprintf("%d-%s-%d@%d", l.Time, worker, l.Sequence, l.Epoch)
}

// Workers returns the number of worker ids.
func (l Layout) Workers() int { return 1 << l.Worker }

// End returns the latest time that an id can contain.
func (l Layout) End() time.Time { return time.UnixMilli(l.endMilli()) }

func (l Layout) endMilli() int64 { return l.Epoch + 1<<l.Time - 1 }

// checkTime returns an EpochError if now is outside the layout's time.
func (l Layout) checkTime(now time.Time) error {
	if begin := time.UnixMilli(l.Epoch); !now.After(begin) || now.After(l.End()) {
		return &EpochError{begin, l.End()}
	}
	return nil
}

// overflows reports whether ms, a time since the epoch, no longer fits into an id. If time and
// sequence take all 63 bits, ms is negative after the highest id: see Generator.last.
func (l Layout) overflows(ms int64) bool { return uint64(ms) >= 1<<l.Time }

// Compose returns the id with the fields p, whose time is truncated to the millisecond. It returns an error
// if a field does not fit the layout or if the id would be 0.
func (l Layout) Compose(p Parts) (int64, error) {
	low := l.Worker - l.Datacenter
	switch {
	case p.Time.Before(time.UnixMilli(l.Epoch)) || !p.Time.Before(l.End().Add(time.Millisecond)):
		return 0, l.partError("time", p.Time.UTC().Format(time.RFC3339Nano))
	case p.Datacenter < 0 || p.Datacenter >= 1<<l.Datacenter:
		return 0, l.partError("data centre", p.Datacenter)
	case p.Worker < 0 || p.Worker >= 1<<low:
		return 0, l.partError("worker id", p.Worker)
	case p.Sequence < 0 || p.Sequence >= 1<<l.Sequence:
		return 0, l.partError("sequence", p.Sequence)
	}
	ms := p.Time.UnixMilli() - l.Epoch
	worker := int64(p.Datacenter)<<low | int64(p.Worker)
	id := ms<<(l.Worker+l.Sequence) | worker<<l.Sequence | int64(p.Sequence)
	if id == 0 {
		return 0, l.partError("time", "of its epoch, because 0 is not an id")
	}
	return id, nil
}

func (l Layout) partError(what string, v any) error {
	return fmt.Errorf("leafsql: snowflake layout %s: no room for the %s %v", l, what, v)
}

// Decompose returns the fields of an id. It returns an error for ids below 1 and for ids with more bits
// than the layout has.
func (l Layout) Decompose(id int64) (Parts, error) {
	ms := id >> (l.Worker + l.Sequence)
	if id < 1 || ms >= 1<<l.Time {
		return Parts{}, fmt.Errorf("leafsql: snowflake layout %s: %d is not an id of this layout", l, id)
	}
	worker := int(id>>l.Sequence) & (1<<l.Worker - 1)
	low := l.Worker - l.Datacenter
	return Parts{
		Time:       time.UnixMilli(l.Epoch + ms),
		Datacenter: worker >> low,
		Worker:     worker & (1<<low - 1),
		Sequence:   int(id) & (1<<l.Sequence - 1),
	}, nil
}
