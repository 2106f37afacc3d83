package worker

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// errorForm matches the form of all errors: what failed: cause; hint.
var errorForm = regexp.MustCompile(`^leafsql: .+; .+$`)

func TestErrorTexts(t *testing.T) {
	until := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	cause := errors.New("leafsql: no answer")
	used := Doc{Owner: "shop-1:42", HighWater: until}
	for _, tt := range []struct {
		err  error
		want string
	}{
		{errClosed, "leafsql: the worker id was given back; open the pool or the generator again"},
		{takenError(1, 7, used, until),
			"leafsql: worker id 7 is held by shop-1:42; stop that process, or wait until 2026-03-01T12:00:00Z if it has ended"},
		{takenError(1, 0, Doc{}, until),
			"leafsql: worker id 0 is held by an unnamed owner; stop that process, or wait until 2026-03-01T12:00:00Z if it has ended"},
		{takenError(1024, 7, used, until),
			"leafsql: all 1024 worker ids are held: the first lease to end, of worker id 7 held by shop-1:42, ends at 2026-03-01T12:00:00Z unless renewed; stop processes that need no worker id, or use a layout with more worker bits"},
		{aheadError(7, used, until.Add(-time.Hour-1500*time.Microsecond)),
			"leafsql: worker id 7 was used by shop-1:42 until 1h0m0.002s ahead of this machine's clock; set the clock, or wait that long"},
		{lostError(7, Doc{}, nil),
			"leafsql: worker id 7 was lost: its lease ended before a renewal was confirmed; the search for another one has begun"},
		{lostError(7, Doc{}, cause),
			"leafsql: worker id 7 was lost: its lease ended before a renewal was confirmed: no answer; the search for another one has begun"},
		{lostError(7, Doc{Nonce: "n", Owner: "shop-1:42"}, nil),
			"leafsql: worker id 7 was lost: it is held by shop-1:42 now; the search for another one has begun"},
		{quarantineError(7, until),
			"leafsql: worker id 7 is held, its ids are safe from 2026-03-01T12:00:00Z on: it was used up to that time; wait until then"},
		{unknownHistoryError("Nacos n1", -1, until),
			"leafsql: the registry of worker ids (Nacos n1) is new or has lost documents: processes that it has lost may issue ids up to 2026-03-01T12:00:00Z; wait until then, or before a first roll-out run leafsql init -new-registry"},
		{termsError("Nacos n1", "lease 1m0s", "lease 10s"),
			`leafsql: the registry of worker ids (Nacos n1) is used with "lease 1m0s", but this process is set to "lease 10s"; give all processes of a table the same leafLease and leafSnowflake; to change them, see "Changing the lease or the layout" in docs/worker-ids.md`},
	} {
		if got := tt.err.Error(); got != tt.want || !errorForm.MatchString(got) {
			t.Errorf("%#v:\n  %s\nwant\n  %s", tt.err, got, tt.want)
		}
	}
	if !errors.Is(fmt.Errorf("x: %w", lostError(7, Doc{}, cause)), cause) || errors.Unwrap(lostError(7, Doc{}, nil)) != nil {
		t.Error("the error of a lost worker id unwraps to something else, want its cause, or nil without a cause")
	}
}

// Every error for a caller's mistake has a hint.
func TestErrorsForMistakesHaveHints(t *testing.T) {
	t.Setenv("LEAF_TEST_NONSENSE", "twelve")
	file := t.TempDir() + "/file"
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		spec string
		cfg  Config
		opts Options
	}{
		"no spec":                  {spec: ""},
		"no parentheses":           {spec: "static"},
		"static of no number":      {spec: "static(x)"},
		"static beyond the layout": {spec: "static(1024)"},
		"a password in a spec":     {spec: "nacos(me:hush@h:1"},
		"no variable":              {spec: "env(LEAF_TEST_NONE)"},
		"a variable of no number":  {spec: "env(LEAF_TEST_NONSENSE)"},
		"an ordinal's address":     {spec: "ordinal(3)"},
		"an unknown option":        {spec: "static(3)", opts: Options{"A": "b"}},
		"a directory that is none": {spec: "static(3)", cfg: Config{State: file}},
		"too short":                {spec: "static(3)", cfg: Config{Lease: time.Second}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, err := opened(t, tt.spec, tt.cfg, tt.opts)
				if err == nil || !errorForm.MatchString(err.Error()) {
					t.Fatalf("err = %v, want the form \"leafsql: …\"", err)
				}
				if strings.Contains(err.Error(), "hush") || strings.Contains(err.Error(), "twelve") {
					t.Errorf("%v: shows what may be a secret, want an error without \"hush\" and an error without \"twelve\"", err)
				}
			})
		})
	}
}

// opened leases the worker id that spec names.
func opened(t *testing.T, spec string, cfg Config, opts Options) (*Keeper, error) {
	t.Helper()
	if cfg.Logger == nil {
		cfg.Logger = discardLogger()
	}
	open, err := Lookup(spec, opts)
	if err != nil {
		return nil, err
	}
	k, err := Keep(open, cfg)
	if err != nil {
		return nil, err
	}
	t.Cleanup(func() { k.Close() })
	_, err = k.Wait(context.Background())
	return k, err
}
