package worker

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// houseForm is how every error reads: what: cause; way out.
var houseForm = regexp.MustCompile(`^leafsql: .+; .+$`)

func TestErrorTexts(t *testing.T) {
	until := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	cause := errors.New("no answer")
	for _, tt := range []struct {
		err  error
		want string
	}{
		{ErrClosed, "leafsql: the worker id was given back; open another lease"},
		{&TakenError{Of: 1, Worker: 7, Owner: "shop-1:42", Until: until},
			"leafsql: worker id 7 is held by shop-1:42; stop that process, or wait until 2026-03-01T12:00:00Z if it is gone"},
		{&TakenError{Of: 1, Worker: 0, Until: until},
			"leafsql: worker id 0 is held by an unnamed owner; stop that process, or wait until 2026-03-01T12:00:00Z if it is gone"},
		{&TakenError{Of: 1024, Worker: 7, Owner: "shop-1:42", Until: until},
			"leafsql: all 1024 worker ids are held: the oldest, 7 of shop-1:42, is free at 2026-03-01T12:00:00Z unless renewed; stop processes that need none, or use a layout with more worker bits"},
		{&TakenError{Of: 2, Worker: 1, Until: until},
			"leafsql: all 2 worker ids are held: the oldest, 1 of an unnamed owner, is free at 2026-03-01T12:00:00Z unless renewed; stop processes that need none, or use a layout with more worker bits"},
		{&ClockError{Worker: 7, Owner: "shop-1:42", Behind: time.Hour + 1500*time.Microsecond},
			"leafsql: worker id 7 was used by shop-1:42 up to 1h0m0.002s ahead of this machine's clock; set the clock right, or wait that long"},
		{&ClockError{Worker: 7, Behind: 5 * time.Minute},
			"leafsql: worker id 7 was used by an unnamed owner up to 5m0s ahead of this machine's clock; set the clock right, or wait that long"},
		{&LostError{Worker: 7},
			"leafsql: worker id 7 was lost: its bound ended before the registry confirmed another; take a successor, which needs the registry"},
		{&LostError{Worker: 7, Cause: cause},
			"leafsql: worker id 7 was lost: its bound ended before the registry confirmed another: no answer; take a successor, which needs the registry"},
		{&LostError{Worker: 7, Owner: "shop-1:42"},
			"leafsql: worker id 7 was lost: it is held by shop-1:42 now; take a successor, which needs the registry"},
		{&LostError{Worker: 7, Owner: "shop-1:42", Cause: cause},
			"leafsql: worker id 7 was lost: it is held by shop-1:42 now: no answer; take a successor, which needs the registry"},
	} {
		if got := tt.err.Error(); got != tt.want {
			t.Errorf("%#v:\n  %s\nwant\n  %s", tt.err, got, tt.want)
		}
	}
	if !errors.Is(fmt.Errorf("x: %w", &LostError{Cause: cause}), cause) {
		t.Error("a LostError hides its cause")
	}
	if errors.Unwrap(&LostError{}) != nil {
		t.Error("a LostError without a cause unwraps to something")
	}
}

// Errors as callers get them: typed, in the house's form, and with what the
// caller would need to act.
func TestErrorsFromOpen(t *testing.T) {
	inUse := func(err error) bool { return errors.Is(err, ErrInUse) }
	ahead := func(err error) bool {
		e, ok := errors.AsType[*ClockError](err)
		return ok && e.Worker == 5 && e.Owner == "first" && e.Behind == time.Hour
	}
	hold := func(t *testing.T, cfg Config) {
		cfg.Owner, cfg.NewRegistry = "first", true
		if _, err := open(t, "static(5)", cfg); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		name  string
		state bool
		first func(t *testing.T, cfg Config)
		is    func(error) bool // in the words of errors.Is and As
	}{
		{"in use", true, hold, inUse},
		{"in use, without state", false, hold, inUse},
		{"a clock ahead", true, func(t *testing.T, cfg Config) {
			d := Doc{Nonce: "n", HW: time.Now().Add(time.Hour).UnixMilli(), Free: true, Owner: "first"}
			setFiles(t, cfg.State, map[string]string{"worker-5.json": d.Encode()})
		}, ahead},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var cfg Config
				if tt.state {
					cfg.State = t.TempDir()
				}
				tt.first(t, cfg)
				_, err := open(t, "static(5)", cfg)
				if err == nil || !tt.is(err) {
					t.Fatalf("%T %v", err, err)
				}
				if !houseForm.MatchString(err.Error()) {
					t.Errorf("%v: not of the house's form", err)
				}
			})
		})
	}
}

// Every refusal of a caller's mistake says the way out.
func TestMistakesSayTheWayOut(t *testing.T) {
	t.Setenv("LEAF_TEST_NONSENSE", "twelve")
	file := t.TempDir() + "/file"
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	opened := func(spec string, cfg Config) func(t *testing.T) error {
		return func(t *testing.T) error {
			_, err := open(t, spec, cfg)
			return err
		}
	}
	from := func(src Source, cfg Config) func(t *testing.T) error {
		return func(t *testing.T) error {
			_, err := tryLease(t, src, cfg)
			return err
		}
	}
	for name, do := range map[string]func(t *testing.T) error{
		"no spec":                  opened("", Config{}),
		"no parentheses":           opened("static", Config{}),
		"static of no number":      opened("static(x)", Config{}),
		"static beyond the layout": opened("static(1024)", Config{}),
		"a password in a spec":     opened("nacos(me:hush@h:1", Config{}),
		"no variable":              opened("env(LEAF_TEST_NONE)", Config{}),
		"a variable of no number":  opened("env(LEAF_TEST_NONSENSE)", Config{}),
		"an ordinal's address":     opened("ordinal(3)", Config{}),
		"an unknown option":        opened("static(3)", Config{Options: Options{"A": "b"}}),
		"a directory that is none": opened("static(3)", Config{State: file}),
		"state that is none":       from(Source{Slots: newFake(1)}, Config{State: file, Registry: "r"}),
		"state without a name":     from(Source{Slots: newFake(1)}, Config{State: t.TempDir()}),
		"no slots":                 from(Source{}, Config{}),
		"no worker ids":            from(Source{Slots: newFake(1)}, Config{Workers: -1}),
		"too short":                from(Source{Slots: newFake(1)}, Config{Bound: time.Second}),
		"a host without a number": func(*testing.T) error {
			_, err := ordinal("shop")
			return err
		},
		"bound twice": func(t *testing.T) error {
			l := leased(t, Source{Slots: newFake(1)}, Config{Workers: 1})
			l.Bind(l.Now)
			return l.Bind(l.Now)
		},
		"no successor": func(t *testing.T) error {
			_, err := leased(t, Source{Slots: newFake(1)}, Config{Workers: 1}).Successor(t.Context())
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			err := do(t)
			if err == nil || !houseForm.MatchString(err.Error()) {
				t.Fatalf("%v: not of the house's form", err)
			}
			if strings.Contains(err.Error(), "hush") || strings.Contains(err.Error(), "twelve") {
				t.Errorf("%v: shows what may be a secret", err)
			}
		})
	}
}
