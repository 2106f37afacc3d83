package snowflake

import (
	"strings"
	"testing"
	"time"
)

var (
	// twitter is Leaf's layout with data centres.
	twitter = Layout{Time: 41, Worker: 10, Sequence: 12, Epoch: 1288834974657, Datacenter: 5}

	discord = Layout{Time: 41, Worker: 10, Sequence: 12, Epoch: 1420070400000, Datacenter: 5}

	// javaScript keeps ids below 2^53, exact as a Number.
	javaScript = Layout{Time: 41, Worker: 5, Sequence: 7, Epoch: 1704067200000}
)

func TestParseLayout(t *testing.T) {
	for text, want := range map[string]Layout{
		"41-10-12":                     Leaf,
		"41-10-12@1288834974657":       Leaf,
		"41-5+5-12":                    twitter,
		"41-10-12@2024-01-01":          {Time: 41, Worker: 10, Sequence: 12, Epoch: 1704067200000},
		"41-5-7@2024-01-01T00:00:00Z":  javaScript,
		"39-8-16@2024-01-01T01:00:00Z": {Time: 39, Worker: 8, Sequence: 16, Epoch: 1704070800000},
		"62-0-1@0":                     {Time: 62, Worker: 0, Sequence: 1},
	} {
		l, err := ParseLayout(text)
		if err != nil || l != want {
			t.Errorf("ParseLayout(%q) = %+v, %v, want %+v", text, l, err, want)
			continue
		}
		if again, err := ParseLayout(l.String()); err != nil || again != l {
			t.Errorf("%s: its String %s gives %+v, %v, want again = %v and no error", text, l, again, err, l)
		}
	}
	for _, text := range []string{
		"", "41-10", "41-10-12-1", "41-10-13", "41--12", "a-10-12", "-41-10-12", "41-10-0", "29-10-12",
		"41-23-1", "41-10-12@", "41-10-12@yesterday", "41-10-12@-1", "41-10-12@9999-01-01", "41-5+-12", "64-0-0",
	} {
		if l, err := ParseLayout(text); err == nil || !strings.Contains(err.Error(), "leafsql: snowflake layout") {
			t.Errorf("%q: ParseLayout(text) = %+v, %v, want an error with \"leafsql: snowflake layout\"", text, l, err)
		}
	}
}

func TestComposeDecompose(t *testing.T) {
	for _, l := range []Layout{Leaf, twitter, discord, javaScript, {Time: 62, Worker: 0, Sequence: 1}} {
		if err := l.Validate(); err != nil {
			t.Error(err)
		}
		top := Parts{
			Time: l.End(), Datacenter: 1<<l.Datacenter - 1,
			Worker: 1<<(l.Worker-l.Datacenter) - 1, Sequence: 1<<l.Sequence - 1,
		}
		id, err := l.Compose(top)
		if err != nil || id != 1<<(l.Time+l.Worker+l.Sequence)-1 {
			t.Errorf("%s: the last id is %d, %v, want id = %v and no error", l, id, err, 1<<(l.Time+l.Worker+l.Sequence)-1)
		}
		if p, err := l.Decompose(id); err != nil || p != top {
			t.Errorf("%s: Decompose(%d) = %+v, %v, want %+v", l, id, p, err, top)
		}
		for _, p := range []Parts{
			{Time: l.End().Add(time.Millisecond)},
			{Time: time.UnixMilli(l.Epoch - 1)},
			{Time: l.End(), Worker: 1 << (l.Worker - l.Datacenter)},
			{Time: l.End(), Datacenter: 1 << l.Datacenter},
			{Time: l.End(), Sequence: 1 << l.Sequence},
			{Time: l.End(), Sequence: -1},
		} {
			if id, err := l.Compose(p); err == nil {
				t.Errorf("%s: Compose(%+v) = %d, want an error", l, p, id)
			}
		}
	}
	if id, _ := javaScript.Compose(Parts{Time: javaScript.End(), Worker: 31, Sequence: 127}); id >= 1<<53 {
		t.Errorf("JavaScript reaches %d, want less than 1<<53", id)
	}
	// The id of a tweet, issued by worker 26 in data centre 11.
	p, err := twitter.Decompose(1541815603606036480)
	if want := (Parts{time.UnixMilli(1656432460105), 11, 26, 0}); err != nil || p != want {
		t.Errorf("p = %+v, err = %v, want p = %v and no error", p, err, want)
	}
	for _, id := range []int64{0, -1} {
		if _, err := Leaf.Decompose(id); err == nil {
			t.Errorf("Decompose(%d) = <nil>, want an error", id)
		}
	}
	if _, err := javaScript.Decompose(1 << 53); err == nil {
		t.Error("Decompose(1<<53) = <nil>, want an error for an id above the layout")
	}
}

func TestComposeRefuses(t *testing.T) {
	if id, err := Leaf.Compose(Parts{Time: time.UnixMilli(Leaf.Epoch)}); err == nil {
		t.Errorf("Compose() = %d for the parts of id 0, want an error", id)
	}
	// Unix milliseconds of such times do not fit an int64.
	for _, at := range []time.Time{time.Unix(1<<55, 0), time.Unix(-1<<55, 0)} {
		if id, err := Leaf.Compose(Parts{Time: at}); err == nil {
			t.Errorf("Compose() at %v = %d, want an error", at, id)
		}
	}
}

// FuzzLayout: Compose returns the id from which Decompose read the fields, and Decompose the fields from
// which Compose made the id.
func FuzzLayout(f *testing.F) {
	f.Add("41-10-12", int64(1<<62), int64(1_700_000_000_000), 3, 5, 77)
	f.Add("41-5+5-12@2024-01-01", int64(1), int64(0), 31, 31, 4095)
	f.Add("41-5-7@2024-01-01", int64(1<<53-1), int64(-1), 0, 31, 127)
	f.Add("41-0-22@0", int64(1<<63-1), int64(1<<41-1), 0, 0, 1<<22-1)
	f.Add("62-0-1@0", int64(-1), int64(1<<62-1), 0, 0, 1)
	f.Fuzz(func(t *testing.T, text string, id, ms int64, datacenter, worker, sequence int) {
		l, err := ParseLayout(text)
		if err != nil {
			if l != (Layout{}) || !strings.Contains(err.Error(), "leafsql: snowflake layout") {
				t.Fatalf("text = %q, l = %+v, err = %v, want l = Layout{} and an error with \"leafsql: snowflake layout\"", text, l, err)
			}
			return
		}
		if again, err := ParseLayout(l.String()); err != nil || again != l {
			t.Fatalf("%q is %s, which is %+v, %v, want again = %v and no error", text, l, again, err, l)
		}
		p, err := l.Decompose(id)
		if fits := id > 0 && uint64(id) < 1<<(l.Time+l.Worker+l.Sequence); fits != (err == nil) {
			t.Fatalf("%s: %d is read as %+v, %v, want fits = %v", l, id, p, err, err == nil)
		}
		if err == nil {
			if again, err := l.Compose(p); err != nil || again != id {
				t.Fatalf("%s: Decompose(%d) = %+v, of which Compose makes %d, %v, want the same id", l, id, p, again, err)
			}
		}
		p = Parts{time.UnixMilli(ms), datacenter, worker, sequence}
		if made, err := l.Compose(p); err == nil {
			if again, err := l.Decompose(made); err != nil || again != p {
				t.Fatalf("%s: Compose(%+v) = %d, of which Decompose makes %+v, %v, want the same parts", l, p, made, again, err)
			}
		}
	})
}
