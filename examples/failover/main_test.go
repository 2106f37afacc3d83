package main

import (
	"bytes"
	"regexp"
	"strings"
	"testing"
)

// TestDemo: ids are issued twice without the mark, and none is with it.
func TestDemo(t *testing.T) {
	var out bytes.Buffer
	if err := run(t.Context(), &out); err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	t.Logf("\n%s", &out)
	for _, want := range []string{
		`(?m)^ +[1-9]\d* +0  ids that are in both databases$`,
		`(?m)^ +\d+ +0  INSERTs that failed with "Duplicate entry"$`,
		`the first id from the new primary came [1-9]\d* ms after`,
	} {
		if !regexp.MustCompile(want).MatchString(out.String()) {
			t.Errorf("the output lacks %q", want)
		}
	}
	if strings.ContainsAny(out.String(), "\x1b\r") {
		t.Error("codes for a terminal in a file")
	}
}
