//go:build unix

package main

import (
	_ "embed"
	"fmt"
	"regexp"
	"strings"
)

// An exclusion is a test, or a subtest of one, that cannot pass on a server.
type exclusion struct {
	server, pkg, test string
	refused           bool // leafsql refuses the test's statements there; false: the server lacks a feature
}

//go:embed excluded.txt
var excludedText string

// exclusions returns the exclusions of a server. An empty server means all.
func exclusions(server string) (all []exclusion, err error) {
	for line := range strings.Lines(excludedText) {
		words := strings.SplitN(strings.TrimSpace(line), " ", 5)
		switch {
		case words[0] == "" || words[0] == "#":
			continue
		case len(words) < 5 || words[3] != "refused" && words[3] != "lacks":
			return nil, fmt.Errorf("excluded.txt: %q is not a server, a package, a test, refused or lacks, and a reason", line)
		case server == "" || server == words[0]:
			all = append(all, exclusion{words[0], words[1], words[2], words[3] == "refused"})
		}
	}
	return all, nil
}

// pattern returns the regular expressions of go test -skip for the test.
func (x exclusion) pattern() string {
	names := strings.Split(x.test, "/")
	for i, name := range names {
		names[i] = "^" + regexp.QuoteMeta(name) + "$"
	}
	return strings.Join(names, "/")
}

// exclude adds the result of a test that does not run.
func (r *results) exclude(x exclusion) {
	top, _, part := strings.Cut(x.test, "/")
	test := r.test(x.pkg, top)
	if !part {
		test.action = "skip"
	}
	test.refused, test.missingFeature = test.refused || x.refused, test.missingFeature || !x.refused
}
