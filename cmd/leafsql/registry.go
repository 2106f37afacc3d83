package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/samber/lo"

	"github.com/leafsql/leafsql/cmd/leafsql/internal/screen"
	"github.com/leafsql/leafsql/cmd/leafsql/internal/survey"
	"github.com/leafsql/leafsql/idgen/snowflake"
	"github.com/leafsql/leafsql/idgen/worker"
	workermysql "github.com/leafsql/leafsql/idgen/worker/mysql"
	"github.com/leafsql/leafsql/internal/spec"
)

// errInUse means that a registry is not new.
var errInUse = errors.New("it is not new, because it already has documents of worker ids, and processes may be running; leave out -new-registry")

// prepareRegistry writes the documents of all worker ids, so that processes that start later do not have to
// wait. If all of these documents exist, it writes the registry's own document if it is missing, and renews documents
// that were written under another identity of the registry. It does nothing if no worker ids are leased, and writes
// nothing in a dry run. summary describes the changes that were made or planned; it is empty without changes. show
// is called with each of its lines as soon as it is known, since the documents take some seconds in some registries.
func prepareRegistry(ctx context.Context, s *screen.Screen, found *survey.Survey, fresh, dry bool, show func(line string)) (summary string, err error) {
	set := found.Set
	shard := set.Shards[0]
	cfg := shard.Config
	if !shard.LeasesWorkers() {
		return "", nil
	}
	layout := cmp.Or(cfg.Snowflake, snowflake.Leaf)
	open := func(context.Context) (worker.Source, error) {
		table := set.Store.LeaseTable()
		return workermysql.Open(table.DB, workermysql.Config{Table: table.PlainName(), Name: table.Label, Logger: slog.New(slog.DiscardHandler)}), nil
	}
	if !shard.UsesLeaseTable() {
		if open, err = worker.Lookup(cfg.Worker, cfg.WorkerOptions); err != nil {
			return "", err
		}
	}
	opening := ctx
	if dry {
		opening = spec.WithReadOnly(ctx)
	}
	src, err := open(opening)
	if err != nil {
		return "", err
	}
	if src.Close != nil {
		defer src.Close()
	}
	if src.Slots == nil { // fixed worker ids have no registry
		return "", nil
	}
	missing := layout.Workers()
	if found.Leases == nil || found.Leases.Exists || !dry { // in a dry run without the table, there are no documents
		_, versions, err := readDocuments(ctx, s, src, layout.Workers())
		if err != nil {
			return "", err
		}
		missing = lo.Count(versions, "")
	}
	if fresh && missing < layout.Workers() {
		return "", fmt.Errorf("leafsql: the registry of worker ids (%s): %w", src.Name, errInUse)
	}
	summary = s.Sprintf("-- %s: make the documents of %d worker ids", screen.ReplaceControl(src.Name), missing)
	if missing > 0 {
		show(summary)
	}
	if dry && missing == layout.Workers() {
		return summary, nil
	}
	end := s.Progress(func() string { return s.Sprintf("making %d documents of worker ids", missing) })
	seen := &recordingSlots{Slots: src.Slots, isDryRun: dry, docs: map[int]worker.Doc{}}
	src.Slots, src.Close = seen, nil
	if dry { // some sources have to write to get the registry's time
		src.Time = nil
	}
	err = worker.Prepare(ctx, func(context.Context) (worker.Source, error) { return src, nil }, worker.Config{
		Workers: layout.Workers(), Layout: layout.String(), Lease: cfg.Lease, NewRegistry: fresh, AnyClock: cfg.AnyClock, Logger: slog.New(slog.DiscardHandler),
	})
	end()
	renewed := len(seen.docs)
	if _, own := seen.docs[worker.RegistrySlot]; own {
		renewed--
	}
	switch {
	case err != nil || len(seen.docs) == 0: // all documents existed and were valid
		return "", err
	case missing > 0:
	case seen.madeRegistry || renewed == 0:
		summary = s.Sprintf("-- %s: write the registry's own document", screen.ReplaceControl(src.Name))
	default: // the documents had another identity of the registry
		summary = s.Sprintf("-- %s: renew what is known of %d worker ids", screen.ReplaceControl(src.Name), renewed)
	}
	if missing == 0 {
		show(summary)
	}
	if !fresh && !dry {
		safe := s.Sprintf("-- ids are safe from %s on", time.Now().Add(cmp.Or(cfg.Lease, time.Minute)+time.Minute).Format(time.TimeOnly))
		show(safe)
		summary += "\n" + safe
	}
	return summary, nil
}

// recordingSlots is a registry that records the documents that are written to it. In a dry run it does not pass
// them on.
type recordingSlots struct {
	worker.Slots
	isDryRun bool

	mu           sync.Mutex
	docs         map[int]worker.Doc
	madeRegistry bool // the registry's own document was missing and was written
}

func (w *recordingSlots) Get(ctx context.Context, slot int) (worker.Doc, worker.Version, error) {
	w.mu.Lock()
	d, ok := w.docs[slot]
	w.mu.Unlock()
	if ok && w.isDryRun {
		return d, worker.Version(d.Encode()), nil
	}
	return w.Slots.Get(ctx, slot)
}

func (w *recordingSlots) Put(ctx context.Context, slot int, d worker.Doc, expected worker.Version) (after worker.Version, swapped bool, err error) {
	if after, swapped = worker.Version(d.Encode()), true; !w.isDryRun {
		after, swapped, err = w.Slots.Put(ctx, slot, d, expected)
	}
	if swapped && err == nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.docs[slot] = d
		w.madeRegistry = w.madeRegistry || slot == worker.RegistrySlot && expected == ""
	}
	return after, swapped, err
}
