//go:build race

package worker

// RaceEnabled is true if the race detector is enabled.
const RaceEnabled = true
