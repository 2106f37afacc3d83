package process

import (
	"context"
	"errors"
	"time"

	"github.com/leafsql/leafsql/driver"
	"github.com/leafsql/leafsql/idgen"
	"github.com/leafsql/leafsql/idgen/segment"
	"github.com/leafsql/leafsql/idgen/snowflake"
	"github.com/leafsql/leafsql/idgen/worker"
	"github.com/leafsql/leafsql/internal/errprefix"
	"github.com/leafsql/leafsql/internal/servererr"
)

// PublicText returns the part of an error that clients may read. It contains no message of the server or driver,
// since such messages name users and hosts. The log has the whole error.
func PublicText(err error) string {
	if e, ok := errors.AsType[*segment.RowError](err); ok {
		return errprefix.TrimText(e)
	}
	if e, ok := errors.AsType[*segment.RolledBackError](err); ok {
		return errprefix.TrimText(e)
	}
	if errors.Is(err, idgen.ErrExhausted) {
		return "the ids of the tag are used up; use another tag"
	}
	if e, ok := errors.AsType[*worker.UnavailableError](err); ok && e.Reason == "quarantine" {
		return "other processes may issue snowflakes until " + e.Until.UTC().Format(time.RFC3339)
	}
	if e, ok := errors.AsType[*snowflake.EpochError](err); ok {
		return errprefix.TrimText(e)
	}
	if _, ok := errors.AsType[*snowflake.LeaseError](err); ok {
		return "there is no worker id; see the server's log; ids are issued as soon as there is one"
	}
	if servererr.Is(err, servererr.NoSuchTable) {
		return "leaf_alloc does not exist; create it with leafsql init"
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return "no ids were available in time; try again"
	}
	return "leaf_alloc is unavailable; see the server's log; ids are issued again as soon as it is back"
}

// HideCauses returns statistics in which errors name no users and hosts. It changes stats.Tags in place.
func HideCauses(stats driver.Stats) driver.Stats {
	for i, t := range stats.Tags {
		if t.Err != nil {
			stats.Tags[i].Err = errors.New(PublicText(t.Err))
		}
	}
	if w := stats.Worker; w != nil {
		hidden := *w
		hidden.Source = ""
		if w.Err != nil {
			hidden.Err = errors.New(PublicText(&snowflake.LeaseError{Cause: w.Err}))
		}
		stats.Worker = &hidden
	}
	return stats
}
