package idgen

import "testing"

func TestCountErrorText(t *testing.T) {
	for want, e := range map[string]CountError{
		"leafsql: 0 ids requested; request at least 1":                                                                {N: 0, Max: 9},
		"leafsql: 10 consecutive ids requested, the generator can issue at most 9; write fewer rows in one statement": {N: 10, Max: 9},
	} {
		if got := e.Error(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
