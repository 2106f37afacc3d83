package workertest

import (
	"testing"
	"time"
)

func TestMemoryPassesTheKit(t *testing.T) {
	for name, f := range map[string]Faults{
		"Good":   {},
		"Slow":   {Delay: 20 * time.Millisecond},
		"Insert": {Insert: true},
	} {
		t.Run(name, func(t *testing.T) {
			Registry(func(testing.TB) Fixture {
				m := &Memory{faults: f}
				return m.Fixture()
			}).RunInBubble(t)
		})
	}
}
