package worker

import (
	"strings"
	"testing"
)

func TestDocRoundTrips(t *testing.T) {
	for _, tt := range []struct {
		doc  Doc
		text string
	}{
		{initialDoc(), `{"nonce":"initial","hw":0,"free":true}`},
		{Doc{Nonce: "ab", HighWater: milliTime(1700000000000), Owner: "shop-1:42"}, `{"nonce":"ab","hw":1700000000000,"free":false,"owner":"shop-1:42"}`},
		{Doc{Nonce: "ab", HighWater: milliTime(0), Free: true, Registry: "r"}, `{"nonce":"ab","hw":0,"free":true,"registry":"r"}`},
		{Doc{Nonce: "ab", HighWater: milliTime(1<<63 - 1)}, `{"nonce":"ab","hw":9223372036854775807,"free":false}`},
		{Doc{Nonce: "ab", HighWater: milliTime(1), Owner: `a "b" <c> é`}, `{"nonce":"ab","hw":1,"free":false,"owner":"a \"b\" \u003cc\u003e é"}`},
	} {
		if got := tt.doc.Encode(); got != tt.text {
			t.Errorf("%+v: %s; want %s", tt.doc, got, tt.text)
		}
		if got, err := decode(tt.text); err != nil || got != tt.doc {
			t.Errorf("%s: %+v, %v; want %+v", tt.text, got, err, tt.doc)
		}
	}
	// A worker id can be taken even if the owner is not valid UTF-8.
	d := Doc{Nonce: "ab", HighWater: milliTime(1), Owner: "a\xffb"}
	if got, err := decode(d.Encode()); err != nil || got.Owner != "a?b" {
		t.Errorf("%s: decode(d.Encode()) = %+v, %v, want Owner = \"a?b\" and no error", d.Encode(), got, err)
	}
	if got, err := decode(Doc{Nonce: "ab"}.Encode()); err != nil || !got.HighWater.Equal(milliTime(0)) {
		t.Errorf("document without a time: decode() = %+v, %v, want the time 0", got, err)
	}
}

// docTexts holds texts that are not documents of a slot. They are also the seeds of
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

func TestDecodeRefuses(t *testing.T) {
	for name, text := range docTexts {
		d, err := decode(text)
		if err == nil || !strings.HasPrefix(err.Error(), "leafsql: not a worker slot's document: ") {
			t.Errorf("%s: decode(text) = %v, want an error with prefix \"leafsql: not a worker slot's document: \"", name, err)
		}
		if d != (Doc{}) {
			t.Errorf("%s: decode() = %+v with an error, want Doc{}", name, d)
		}
	}
	// Surrounding space is harmless; consoles add it.
	if _, err := decode(" {\"nonce\":\"ab\",\n\"hw\":1, \"free\":true}\n"); err != nil {
		t.Error(err)
	}
}

func FuzzDecode(f *testing.F) {
	for _, text := range docTexts {
		f.Add(text)
	}
	f.Add(initialDoc().Encode())
	f.Add(Doc{Nonce: "ab", HighWater: milliTime(1700000000000), Owner: "shop-1:42", Registry: "x"}.Encode())
	f.Fuzz(func(t *testing.T, text string) {
		d, err := decode(text)
		if err != nil {
			if d != (Doc{}) {
				t.Errorf("decode(%q) = %+v, %v, want Doc{} with an error", text, d, err)
			}
			return
		}
		if d.Nonce == "" || d.HighWater.Before(milliTime(0)) {
			t.Errorf("decode(%q) = %+v, want a nonce and a time of at least 0", text, d)
		}
		again, err := decode(d.Encode())
		if err != nil || again != d {
			t.Errorf("%q: %+v, encoded %+v, %v, want again = %v and no error", text, d, again, err, d)
		}
	})
}

func decode(text string) (d Doc, err error) {
	err = d.Decode(text)
	return d, err
}
