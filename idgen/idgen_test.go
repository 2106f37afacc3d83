package idgen

import "testing"

func TestCountError(t *testing.T) {
	for want, e := range map[string]CountError{
		"leafsql: 0 ids asked for; ask for at least 1":                                                            {N: 0, Max: 9},
		"leafsql: 10 consecutive ids asked for, the generator gives at most 9; write fewer rows in one statement": {N: 10, Max: 9},
	} {
		if got := e.Error(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
