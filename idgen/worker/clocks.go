package worker

import (
	"context"
	"fmt"
	"time"
)

// compareClocks asks for the registry's time, at first and when this machine's
// clock has jumped, or anew.
func (e *engine) compareClocks(ctx context.Context, anew bool) {
	drift := e.clock.drift()
	if e.source.Time == nil || !anew && (drift-e.drift).Abs() < time.Second {
		return
	}
	one, cancel := e.host.within(ctx, min(e.call, 2*time.Second))
	defer cancel()
	now := e.now()
	if theirs, err := e.source.Time(one); err == nil {
		e.drift, e.offset = drift, now.Sub(theirs).Round(time.Millisecond)
	}
}

// clockError keeps a process whose clock is ahead of the registry's from taking
// a worker id: to it leases are over that are not, and each one that it takes is
// blocked for everybody else until that time has come.
func (e *engine) clockError(ctx context.Context) error {
	e.compareClocks(ctx, e.offset > e.skew)
	if e.anyClock || e.offset <= e.skew {
		return nil
	}
	now := e.now()
	return &UnusableError{fmt.Errorf("leafsql: no worker id is taken, as this machine's clock is %v ahead of the registry's: %s at %s, %s at the registry%s; set right which of the two is wrong, or take one all the same with leafAnyClock=true",
		e.offset.Round(time.Second), now.UTC().Format(time.RFC3339), e.owner, now.Add(-e.offset).UTC().Format(time.RFC3339), inParentheses(e.source.Name))}
}
