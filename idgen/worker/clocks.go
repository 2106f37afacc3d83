package worker

import (
	"context"
	"fmt"
	"time"

	"github.com/leafsql/leafsql/internal/errprefix"
)

// compareClocks reads the registry's time if this machine's clock has
// jumped, or if always is set.
func (e *engine) compareClocks(ctx context.Context, always bool) {
	drift := e.clock.drift()
	if e.source.Time == nil || !always && (drift-e.lastDrift).Abs() < time.Second {
		return
	}
	one, cancel := e.host.withTimeout(ctx, min(e.callTimeout, 2*time.Second))
	defer cancel()
	now := e.now()
	theirs, err := e.source.Time(one)
	e.lastDrift = drift
	if err == nil {
		e.clockOffset = now.Sub(theirs).Round(time.Millisecond)
	} else if !e.noRegistryTime && ctx.Err() == nil {
		e.log.Warn("leafsql: the time of the registry of worker ids cannot be read, so a clock that is ahead of it is not detected; worker ids are leased without this check", "registry", e.source.Name, "err", errprefix.TrimText(err))
	}
	e.noRegistryTime = err != nil
}

// clockError returns an error if this machine's clock is too far ahead of the registry's. Such a process must
// not take a worker id: it would treat valid leases as expired, and other processes could not use
// its worker id until their clocks reach its time. If the registry does not
// return its time, clockError uses the last comparison.
func (e *engine) clockError(ctx context.Context) error {
	e.compareClocks(ctx, true)
	if e.anyClock || e.clockOffset <= e.skew {
		return nil
	}
	now := e.now()
	return &UnusableError{fmt.Errorf("leafsql: no worker id is leased, because this machine's clock is %v ahead of the registry's: %s at %s, %s at the registry%s; set this machine's clock and restart the process, or set the registry's clock, or allow the difference with leafAnyClock=true",
		e.clockOffset.Round(time.Second), now.UTC().Format(time.RFC3339), e.owner, now.Add(-e.clockOffset).UTC().Format(time.RFC3339), inParentheses(e.source.Name))}
}
