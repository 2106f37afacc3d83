package worker

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestPutAfterAPause: what was decided on too long ago is not sent, for the
// time in it is old.
func TestPutAfterAPause(t *testing.T) {
	for late, want := range map[time.Duration]Result{0: OK, time.Millisecond: Refused} {
		synctest.Test(t, func(t *testing.T) {
			m := &memory{}
			c, err := newChain(Source{Slots: m}, Config{Workers: 1, Logger: quiet()})
			if err != nil {
				t.Fatal(err)
			}
			e := c.engine
			decided := e.now()
			time.Sleep(ms(e.late) + late)
			_, r, err := e.put(t.Context(), decided, 0, Initial(), "")
			_, v, _ := m.Get(t.Context(), 0)
			if r != want || (err == nil) != (want == OK) || (v != "") != (want == OK) {
				t.Errorf("%v after D: %v, %v; the slot is at %q", late, r, err, v)
			}
		})
	}
}
