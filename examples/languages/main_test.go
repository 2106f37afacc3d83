//go:build clients

package main

import (
	"bytes"
	"os"
	"regexp"
	"testing"
)

func TestMain(m *testing.M) {
	if os.Getenv(goEnv) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

func TestDemo(t *testing.T) {
	var out bytes.Buffer
	if err := run(t.Context(), &out, 101); err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	for _, want := range []string{
		`(?s)1\. Two shards.* all +505 .*505 orders, 255 ids, duplicates 250\n`,
		`(?s)2\. The same programs.*505 orders, 505 ids, duplicates 0\n$`,
	} {
		if !regexp.MustCompile(want).MatchString(out.String()) {
			t.Errorf("the output lacks %q:\n%s", want, &out)
		}
	}
}
