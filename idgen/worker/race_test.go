//go:build race

package worker

// RaceEnabled says whether the race detector watches the tests.
const RaceEnabled = true
