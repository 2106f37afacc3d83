package worker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestOptionsOnly(t *testing.T) {
	for _, tt := range []struct {
		opts  Options
		known []string
		want  string // in the error; "" is none
	}{
		{nil, nil, ""},
		{nil, []string{"Group"}, ""},
		{Options{"Group": ""}, []string{"Namespace", "Group"}, ""},
		{Options{"Gruop": "x"}, []string{"Namespace", "Group"}, `unknown option "Gruop"; known are Namespace, Group`},
		{Options{"group": "x"}, []string{"Group"}, `unknown option "group"`},
		{Options{"B": "", "A": "", "C": ""}, []string{"C"}, `unknown option "A"`},
		{Options{"A": "secret"}, nil, `unknown option "A"; known are none`},
	} {
		err := tt.opts.Only(tt.known...)
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%v.Only(%q): %v; want %q", tt.opts, tt.known, err, tt.want)
		}
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("%v shows a value", err)
		}
	}
}

// registered makes a source known for one test.
func registered(t *testing.T, name string, open Opener) {
	t.Helper()
	Register(name, open)
	t.Cleanup(func() {
		sources.Lock()
		defer sources.Unlock()
		delete(sources.open, name)
	})
}

func TestRegister(t *testing.T) {
	nothing := func(context.Context, string, Options) (Source, error) { return Source{}, nil }
	registered(t, "test-z", nothing)
	registered(t, "test-a", nothing)
	for name, register := range map[string]func(){
		"twice for test-a":                func() { Register("test-a", nothing) },
		"without a name":                  func() { Register("", nothing) },
		"without a name or a function":    func() { Register("test-b", nil) },
		"worker.Register called twice fo": func() { Register("static", nothing) },
	} {
		func() {
			defer func() {
				if p := fmt.Sprint(recover()); !strings.HasPrefix(p, "leafsql: ") || !strings.Contains(p, name) {
					t.Errorf("%q: panic %s", name, p)
				}
			}()
			register()
		}()
	}
	if got, want := Registered(), []string{"env", "ordinal", "static", "test-a", "test-z"}; !slices.Equal(got, want) {
		t.Errorf("registered are %q; want %q", got, want)
	}
}

// specs are the seeds of the fuzz test and the cases of the plain one.
var specs = []struct {
	spec, name, address string
	ok                  bool
}{
	{"static(7)", "static", "7", true},
	{"nacos(h1:8848,h2:8848)", "nacos", "h1:8848,h2:8848", true},
	{"ordinal()", "ordinal", "", true},
	{"redis([::1]:6379)", "redis", "[::1]:6379", true},
	{"a(b(c)d)", "a", "b(c)d", true},
	{"a())", "a", ")", true},
	{"a(()", "a", "(", true},
	{" a ( b )", " a ", " b ", true},
	{"é(ü)", "é", "ü", true},
	{"", "", "", false},
	{"static", "", "", false},
	{"(7)", "", "", false},
	{"()", "", "", false},
	{"static(7", "", "", false},
	{"static7)", "", "", false},
	{"static(7) ", "", "", false},
	{"static(7)x", "", "", false},
	{")(", "", "", false},
}

func TestParseSpec(t *testing.T) {
	for _, tt := range specs {
		name, address, err := ParseSpec(tt.spec)
		if (err == nil) != tt.ok || name != tt.name || address != tt.address {
			t.Errorf("%q: %q, %q, %v", tt.spec, name, address, err)
		}
		if err != nil && (!strings.Contains(err.Error(), fmt.Sprintf("%q", tt.spec)) || !strings.Contains(err.Error(), "name(address)")) {
			t.Errorf("%q: %v", tt.spec, err)
		}
	}
}

func FuzzParseSpec(f *testing.F) {
	for _, tt := range specs {
		f.Add(tt.spec)
	}
	f.Fuzz(func(t *testing.T, spec string) {
		name, address, err := ParseSpec(spec)
		switch {
		case err != nil && (name != "" || address != ""):
			t.Errorf("%q: %q, %q beside %v", spec, name, address, err)
		case err == nil && (name == "" || strings.Contains(name, "(") || name+"("+address+")" != spec):
			t.Errorf("%q: %q, %q", spec, name, address)
		}
	})
}

func TestOpenSource(t *testing.T) {
	failed := errors.New("no")
	var got []any
	registered(t, "test", func(ctx context.Context, address string, opts Options) (Source, error) {
		got = []any{ctx.Value("key"), address, opts["A"]}
		return Fixed(3), failed
	})
	//lint:ignore SA1029 the key of one test
	ctx := context.WithValue(t.Context(), "key", "value")
	if _, err := OpenSource(ctx, "test(h:1)", Options{"A": "b"}); err != failed {
		t.Errorf("the source's own error: %v", err)
	}
	if want := []any{"value", "h:1", "b"}; !slices.Equal(got, want) {
		t.Errorf("the source was opened with %q; want %q", got, want)
	}
	if _, err := Open(ctx, "test(h:1)", Config{}); err != failed {
		t.Errorf("the source's own error: %v", err)
	}
	_, err := OpenSource(ctx, "nacso(h:1)", nil)
	if err == nil || err.Error() != `leafsql: worker source "nacso" is unknown; registered are env, ordinal, static, test (forgotten import?)` {
		t.Errorf("an unknown name: %v", err)
	}
}

// A source that names worker ids is asked before every search, and only for
// what the layout has.
func TestSourceWorkers(t *testing.T) {
	for _, tt := range []struct {
		name    string
		workers []int
		failed  error
		want    string // in the error; "" is none
	}{
		{"some", []int{5, 9}, nil, ""},
		{"the last of the layout", []int{15}, nil, ""},
		{"beyond it", []int{5, 16}, nil, "worker id 16 does not fit the layout, which has 0 … 15; use one with more worker bits"},
		{"below 0", []int{-1}, nil, "worker id -1 does not fit the layout"},
		{"none", nil, nil, "no worker id to choose from"},
		{"not known", nil, errAway, "worker ids to choose from: the registry is away"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake(16)
				src := Source{Slots: f, Workers: func(context.Context) ([]int, error) { return tt.workers, tt.failed }}
				l, err := tryLease(t, src, Config{Workers: 16})
				if tt.want != "" {
					if err == nil || !strings.Contains(err.Error(), tt.want) {
						t.Errorf("%v; want %q", err, tt.want)
					}
					if len(f.puts) != 0 {
						t.Errorf("wrote %v", f.puts)
					}
					return
				}
				if err != nil || !slices.Contains(tt.workers, l.Worker()) || l.Workers() != 16 {
					t.Fatalf("worker id %d of %d, %v", l.Worker(), l.Workers(), err)
				}
				tt.workers = []int{2}
				lose(t, f, l)
				next, err := keep(t, func() (*Lease, error) { return l.Successor(t.Context()) })
				if err != nil || next.Worker() != 2 {
					t.Errorf("the successor: %v", err)
				}
			})
		})
	}
}

// The worker id held last is tried first where it is free, and is a hint only.
func TestSourceLast(t *testing.T) {
	for name, tt := range map[string]struct {
		last int
		ok   bool
		held bool // by somebody else
		want bool
	}{
		"free":              {11, true, false, true},
		"held":              {11, true, true, false},
		"not known":         {11, false, false, false},
		"not in the layout": {64, true, false, false},
		"nonsense":          {-1, true, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				hits := 0
				for range 8 { // one in 64 by chance
					f := newFake(64)
					if tt.held {
						f.write(tt.last, Doc{Nonce: "other", HW: time.Now().Add(time.Minute).UnixMilli()})
					}
					last := func(context.Context) (int, bool) { return tt.last, tt.ok }
					if leased(t, Source{Slots: f, Last: last}, Config{Workers: 64}).Worker() == tt.last {
						hits++
					}
				}
				if got := hits == 8; got != tt.want {
					t.Errorf("%d of 8 took the worker id held last", hits)
				}
			})
		})
	}
}
