package worker

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestDocRoundTrip(t *testing.T) {
	for _, tt := range []struct {
		doc  Doc
		text string
	}{
		{Initial(), `{"nonce":"initial","hw":0,"free":true}`},
		{Doc{Nonce: "ab", HW: 1700000000000, Owner: "shop-1:42"}, `{"nonce":"ab","hw":1700000000000,"free":false,"owner":"shop-1:42"}`},
		{Doc{Nonce: "ab", HW: 0, Free: true}, `{"nonce":"ab","hw":0,"free":true}`},
		{Doc{Nonce: "ab", HW: 1<<63 - 1}, `{"nonce":"ab","hw":9223372036854775807,"free":false}`},
		{Doc{Nonce: "ab", HW: 1, Owner: `a "b" <c> é`}, `{"nonce":"ab","hw":1,"free":false,"owner":"a \"b\" \u003cc\u003e é"}`},
	} {
		if got := tt.doc.Encode(); got != tt.text {
			t.Errorf("%+v: %s; want %s", tt.doc, got, tt.text)
		}
		if got, err := ParseDoc(tt.text); err != nil || got != tt.doc {
			t.Errorf("%s: %+v, %v; want %+v", tt.text, got, err, tt.doc)
		}
	}
	// An owner that is no text must not keep a worker id from being taken.
	d := Doc{Nonce: "ab", HW: 1, Owner: "a\xffb"}
	if got, err := ParseDoc(d.Encode()); err != nil || got.Owner != "a?b" {
		t.Errorf("%s: %+v, %v", d.Encode(), got, err)
	}
}

// docTexts are what no backend may take for a slot's document, and the seeds of
// the fuzz test.
var docTexts = map[string]string{
	"nothing":             ``,
	"null":                `null`,
	"an empty object":     `{}`,
	"a list":              `[{"nonce":"ab","hw":1,"free":true}]`,
	"half":                `{"nonce":"ab","hw":1,"fr`,
	"no hw":               `{"nonce":"ab","free":true}`,
	"null for hw":         `{"nonce":"ab","hw":null,"free":true}`,
	"no nonce":            `{"hw":1,"free":true}`,
	"an empty nonce":      `{"nonce":"","hw":1,"free":true}`,
	"below 0":             `{"nonce":"ab","hw":-1,"free":true}`,
	"a fraction":          `{"nonce":"ab","hw":1.5,"free":true}`,
	"too large":           `{"nonce":"ab","hw":9223372036854775808,"free":true}`,
	"a string for hw":     `{"nonce":"ab","hw":"1","free":true}`,
	"a number for free":   `{"nonce":"ab","hw":1,"free":1}`,
	"another field":       `{"nonce":"ab","hw":1,"free":true,"term":2}`,
	"two documents":       `{"nonce":"ab","hw":1,"free":true}{"nonce":"cd","hw":2,"free":true}`,
	"text after it":       `{"nonce":"ab","hw":1,"free":true} x`,
	"a brace after it":    `{"nonce":"ab","hw":1,"free":true}}`,
	"a bracket after it":  `{"nonce":"ab","hw":1,"free":true}]`,
	"initial with hw":     `{"nonce":"initial","hw":1,"free":true}`,
	"initial and held":    `{"nonce":"initial","hw":0,"free":false}`,
	"edited by hand":      `worker 7 is free`,
	"yaml":                "nonce: ab\nhw: 1\n",
	"a number by itself":  `7`,
	"a zero byte at last": "{\"nonce\":\"ab\",\"hw\":1,\"free\":true}\x00",
}

func TestParseDocRefuses(t *testing.T) {
	for name, text := range docTexts {
		d, err := ParseDoc(text)
		if err == nil || !strings.HasPrefix(err.Error(), "leafsql: not a worker slot's document: ") {
			t.Errorf("%s: %v", name, err)
		}
		if d != (Doc{}) {
			t.Errorf("%s: %+v beside the error", name, d)
		}
	}
	// Space around it is nobody's harm: consoles add it.
	if _, err := ParseDoc(" {\"nonce\":\"ab\",\n\"hw\":1, \"free\":true}\n"); err != nil {
		t.Error(err)
	}
}

func FuzzParseDoc(f *testing.F) {
	for _, text := range docTexts {
		f.Add(text)
	}
	f.Add(Initial().Encode())
	f.Add(Doc{Nonce: "ab", HW: 1700000000000, Owner: "shop-1:42", Anchor: "x"}.Encode())
	f.Fuzz(func(t *testing.T, text string) {
		d, err := ParseDoc(text)
		if err != nil {
			if d != (Doc{}) {
				t.Errorf("%q: %+v beside %v", text, d, err)
			}
			return
		}
		if d.Nonce == "" || d.HW < 0 {
			t.Errorf("%q: %+v", text, d)
		}
		again, err := ParseDoc(d.Encode())
		if err != nil || again != d {
			t.Errorf("%q: %+v, encoded %+v, %v", text, d, again, err)
		}
	})
}

func TestDocSame(t *testing.T) {
	d := Doc{Nonce: "ab", HW: 7, Free: true, Owner: "me"}
	for _, tt := range []struct {
		e    Doc
		want bool
	}{
		{d, true},
		{Doc{"ab", 7, true, "you", ""}, true},
		{Doc{"ab", 7, true, "", ""}, true},
		{Doc{"cd", 7, true, "me", ""}, false},
		{Doc{"ab", 8, true, "me", ""}, false},
		{Doc{"ab", 7, false, "me", ""}, false},
		{Doc{}, false},
	} {
		if d.Same(tt.e) != tt.want || tt.e.Same(d) != tt.want {
			t.Errorf("%+v and %+v are the same: %v", d, tt.e, !tt.want)
		}
	}
	if !Initial().IsInitial() || d.IsInitial() || (Doc{}).IsInitial() {
		t.Error("which document is the initial one")
	}
}

func TestResultString(t *testing.T) {
	for r, want := range map[Result]string{OK: "ok", Refused: "refused", Unknown: "unknown", 17: "unknown", -1: "unknown"} {
		if r.String() != want {
			t.Errorf("%d: %s; want %s", int(r), r, want)
		}
	}
	if (Result(0)) == OK {
		t.Error("a result that nobody set is OK")
	}
}

// witness is Slots with an anchor that hangs.
type witness struct{ *fake }

func (witness) Anchor(ctx context.Context) (string, error) {
	<-ctx.Done()
	return "", ctx.Err()
}

func TestTimedCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(1)
		f.set(fakeFaults{hangs: true})
		s := timed{witness{f}, 3 * time.Second}
		for name, call := range map[string]func(ctx context.Context) error{
			"Get":    func(ctx context.Context) error { _, _, err := s.Get(ctx, 0); return err },
			"Put":    func(ctx context.Context) error { _, _, err := s.Put(ctx, 0, Initial(), ""); return err },
			"Anchor": func(ctx context.Context) error { _, err := s.Anchor(ctx); return err },
		} {
			for _, own := range []time.Duration{time.Second, time.Minute} {
				ctx, cancel := context.WithTimeout(t.Context(), own)
				began := time.Now()
				err := call(ctx)
				if took := time.Since(began); !errors.Is(err, context.DeadlineExceeded) || took != min(own, 3*time.Second) {
					t.Errorf("%s under %v: %v after %v", name, own, err, took)
				}
				cancel()
			}
		}
		f.set(fakeFaults{})
		if a, err := (timed{f, time.Second}).Anchor(t.Context()); a != "" || err != nil {
			t.Errorf("Slots without an anchor: %q, %v", a, err)
		}
	})
}
