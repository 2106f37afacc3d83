package spec

import (
	"fmt"
	"strings"
	"testing"
)

// specs holds the seeds of the fuzz test, which are also the cases of the plain test.
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

func TestParseReadsNameAndAddress(t *testing.T) {
	for _, tt := range specs {
		name, address, err := Parse(tt.spec)
		if (err == nil) != tt.ok || name != tt.name || address != tt.address {
			t.Errorf("Parse(%q) = %q, %q, %v; want %q, %q, ok %v", tt.spec, name, address, err, tt.name, tt.address, tt.ok)
		}
		if err != nil && (!strings.Contains(err.Error(), fmt.Sprintf("%q", tt.spec)) || !strings.Contains(err.Error(), "name(address)")) {
			t.Errorf("Parse(%q): error %v, want it to contain the text and name(address)", tt.spec, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, tt := range specs {
		f.Add(tt.spec)
	}
	f.Fuzz(func(t *testing.T, spec string) {
		name, address, err := Parse(spec)
		switch {
		case err != nil && (name != "" || address != ""):
			t.Errorf("Parse(%q) = %q, %q, %v; want empty strings with an error", spec, name, address, err)
		case err == nil && (name == "" || strings.Contains(name, "(") || name+"("+address+")" != spec):
			t.Errorf("Parse(%q) = %q, %q; want the parts of the text", spec, name, address)
		}
	})
}
