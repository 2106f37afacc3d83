package snowflake

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/leafsql/leafsql/idgen/worker"
	"github.com/leafsql/leafsql/idgen/worker/workertest"
)

// A generator that only takes a worker id at the start and returns it at the stop repeats ids
// if the process is started again in the millisecond in which it ended, or on another machine
// with a slow clock. With leases no id repeats, whether the worker id was returned or not.
func TestRestartElsewhereRepeatsNoID(t *testing.T) {
	for _, text := range []string{"41-5-17", "41-5+5-12"} {
		layout, err := ParseLayout(text)
		if err != nil {
			t.Fatal(err)
		}
		for _, crash := range []bool{false, true} {
			var (
				slots = &workertest.Memory{}
				ids   []int64
				had   = -1 // worker id of the previous process
				ended = today
			)
			life := func(at time.Time, fresh bool) (first Parts) {
				bubble(t, at, func(t *testing.T) {
					open := func(context.Context) (worker.Source, error) {
						last := func(context.Context) (int, bool) { return had, had >= 0 }
						return worker.Source{Slots: slots, Name: "test", Last: last}, nil
					}
					g, err := New(layout, open, worker.Config{NewRegistry: fresh, Logger: slog.New(slog.DiscardHandler)})
					if err != nil {
						t.Fatal(err)
					}
					if first = parts(t, g, next(t, g, 1)); fresh {
						time.Sleep(time.Minute) // until all slots exist
					}
					ids = append(ids, draw(t, g, 4, 50)...)
					had = g.Worker().Worker
					slots.Fault(func(f *workertest.Faults) { f.Away = crash })
					ended = time.Now()
					g.Close()
					slots.Fault(func(f *workertest.Faults) { f.Away = false })
				})
				return first
			}
			life(today, true)
			was, before := had, ended
			again := life(ended.Add(10*time.Millisecond), false) // on the same or another machine; ids may be some ms ahead
			if !crash && (had != was || again.Time.Sub(before) > time.Second) {
				t.Errorf("%s: worker id %d and a first id %v later, want worker id %d within 1s", text, had, again.Time.Sub(before), was)
			}
			back := life(ended.Add(-time.Hour), false)
			if back.Time.After(before.Add(-50 * time.Minute)) {
				t.Errorf("%s: an id of %v with the clock set back, want one about an hour before %v", text, back.Time, before)
			}
			distinct(t, ids)
		}
	}
}
