package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/leafsql/leafsql/cmd/leafsql/internal/databases"
	"github.com/leafsql/leafsql/cmd/leafsql/internal/screen"
	"github.com/leafsql/leafsql/driver"
	"github.com/leafsql/leafsql/idgen/snowflake"
	"github.com/leafsql/leafsql/idgen/worker"
	workermysql "github.com/leafsql/leafsql/idgen/worker/mysql"
)

// errInUse says that a registry is not new.
var errInUse = errors.New("it holds documents of worker ids already, so that somebody may be running: leave -new-registry out, and the first process waits")

// prepareRegistry makes the documents of all worker ids, so that processes that
// come later have nothing to wait for. It does nothing where no worker ids are
// leased. It says what it did, "" for nothing.
func prepareRegistry(ctx context.Context, s *screen.Screen, set *databases.Set, fresh bool) (did string, err error) {
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
		return fmt.Errorf("leafsql: the registry of worker ids (%s): %w", src.Name, err)
	}
	_, versions, err := documents(ctx, s, src, layout.Workers())
	if err != nil {
		return "", err
	}
	missing := 0
	for _, v := range versions {
		if v == "" {
			missing++
		}
	}
	switch {
	case fresh && missing < len(versions):
		return "", failed(errInUse)
	case missing == 0:
		return "", nil
	}
	end := s.Progress(func() string { return fmt.Sprintf("making %d documents of worker ids", missing) })
	src.Close = nil
	err = worker.Prepare(ctx, func(context.Context) (worker.Source, error) { return src, nil }, worker.Config{
		Workers: layout.Workers(), Layout: layout.String(), Lease: cfg.Lease, NewRegistry: fresh, Logger: slog.New(slog.DiscardHandler),
	})
	end()
	if err != nil {
		return "", failed(err)
	}
	did = fmt.Sprintf("-- %s: made the documents of %d worker ids", screen.Plain(src.Name), missing)
	if !fresh {
		did += fmt.Sprintf(", whose ids are safe from %s on; -new-registry says of a new registry that nobody is running, and nobody waits",
			time.Now().Add(cmp.Or(cfg.Lease, time.Minute)+time.Minute).Format(time.TimeOnly))
	}
	return did, nil
}
