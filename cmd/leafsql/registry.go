package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/samber/lo"

	"github.com/leafsql/leafsql/cmd/leafsql/internal/screen"
	"github.com/leafsql/leafsql/cmd/leafsql/internal/survey"
	"github.com/leafsql/leafsql/driver"
	"github.com/leafsql/leafsql/idgen/snowflake"
	"github.com/leafsql/leafsql/idgen/worker"
	workermysql "github.com/leafsql/leafsql/idgen/worker/mysql"
	"github.com/leafsql/leafsql/internal/part"
)

// errInUse says that a registry is not new.
var errInUse = errors.New("it is not new, as it holds documents of worker ids already, and somebody may be running; leave -new-registry out")

// prepareRegistry makes the documents of all worker ids, so that processes that
// come later have nothing to wait for. Where all are there it makes the registry's
// own, and those that are unknown to it, if need be. It does nothing where no worker
// ids are leased, and writes nothing in a dry run. It says what it did or would do, ""
// for nothing.
func prepareRegistry(ctx context.Context, s *screen.Screen, found *survey.Survey, fresh, dry bool) (did string, err error) {
	set := found.Set
	shard := set.Shards[0]
	cfg := shard.Config
	if !shard.LeasesHere() && (cfg.Worker == "" || !slices.ContainsFunc(cfg.Tables, func(r driver.Rule) bool { return r.Kind == driver.Snowflake })) {
		return "", nil
	}
	layout, err := snowflake.ParseLayout(cmp.Or(cfg.Snowflake, snowflake.Leaf.String()))
	if err != nil {
		return "", err
	}
	open := func(context.Context) (worker.Source, error) {
		table := set.Store.Workers()
		return workermysql.Open(table.DB, workermysql.Config{Table: table.Plain(), Name: table.Label, Logger: slog.New(slog.DiscardHandler)}), nil
	}
	if !shard.LeasesHere() {
		if open, err = worker.Lookup(cfg.Worker, cfg.WorkerOptions); err != nil {
			return "", err
		}
	}
	src, err := open(ctx)
	if err != nil {
		return "", err
	}
	if src.Close != nil {
		defer src.Close()
	}
	if src.Slots == nil { // fixed worker ids have no registry
		return "", nil
	}
	failed := func(err error) error {
		return fmt.Errorf("leafsql: the registry of worker ids (%s): %w", src.Name, part.Of(err))
	}
	own := func() (worker.Version, error) {
		asked, end := context.WithTimeout(ctx, askedFor)
		defer end()
		_, v, err := src.Slots.Get(asked, worker.RegistrySlot)
		return v, err
	}
	missing, before := layout.Workers(), worker.Version("")
	if found.Leases == nil || found.Leases.Exists || !dry { // else the table is still to be made
		_, versions, err := documents(ctx, s, src, layout.Workers())
		if err != nil {
			return "", err
		}
		missing = lo.Count(versions, "")
		if before, err = own(); err != nil {
			return "", failed(err)
		}
	}
	did = fmt.Sprintf("-- %s: make the documents of %d worker ids", screen.Plain(src.Name), missing)
	if missing == 0 {
		did = fmt.Sprintf("-- %s: write the registry's own document", screen.Plain(src.Name))
	}
	switch {
	case fresh && missing < layout.Workers():
		return "", failed(errInUse)
	case dry && missing == 0 && before != "":
		return "", nil
	case dry:
		return did, nil
	}
	end := s.Progress(func() string { return fmt.Sprintf("making %d documents of worker ids", missing) })
	src.Close = nil
	err = worker.Prepare(ctx, func(context.Context) (worker.Source, error) { return src, nil }, worker.Config{
		Workers: layout.Workers(), Layout: layout.String(), Lease: cfg.Lease, NewRegistry: fresh, AnyClock: cfg.AnyClock, Logger: slog.New(slog.DiscardHandler),
	})
	end()
	if err != nil {
		return "", err
	}
	switch after, err := own(); {
	case err != nil:
		return "", failed(err)
	case after == before: // all was there, and known
		return "", nil
	case !fresh:
		did += "\n-- ids are safe from " + time.Now().Add(cmp.Or(cfg.Lease, time.Minute)+time.Minute).Format(time.TimeOnly) + " on"
	}
	return did, nil
}
