package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leafsql/leafsql/cmd/leafsql/internal/databases"
	"github.com/leafsql/leafsql/cmd/leafsql/internal/screen"
	"github.com/leafsql/leafsql/idgen/snowflake"
	"github.com/leafsql/leafsql/idgen/worker"
	_ "github.com/leafsql/leafsql/idgen/worker/etcd" // sources of worker ids
	_ "github.com/leafsql/leafsql/idgen/worker/redis"
	_ "github.com/leafsql/leafsql/idgen/worker/zookeeper"
	_ "github.com/leafsql/leafsql/nacos"
)

// A holder is who holds a worker id, or did not give it back.
type holder struct {
	Worker int       `json:"worker"`
	Owner  string    `json:"owner"`
	Until  time.Time `json:"until"` // the latest time that it may put into an id
	Over   bool      `json:"over"`  // that is past: it has ended without giving the worker id back, or cannot renew it
}

// Bounds of what the registry is asked.
const (
	askedAtOnce = 16
	askedFor    = 10 * time.Second // each document
)

func runWorkers(ctx context.Context, s *screen.Screen, args []string) (int, error) {
	f := newFlags(s, "workers").onDatabases().withJSON()
	if err := f.parse(args, false); err != nil {
		return unclear, err
	}
	text, err := databases.Lookup(f.dsn)
	if err != nil {
		return unclear, err
	}
	cfg, err := databases.Parse(text)
	if err != nil {
		return unclear, err
	}
	if cfg.Worker == "" {
		return unclear, errors.New("leafsql: the DSN has no leafWorker; give the one of a program that makes snowflakes")
	}
	layout := snowflake.Leaf
	if cfg.Snowflake != "" {
		if layout, err = snowflake.ParseLayout(cfg.Snowflake); err != nil {
			return unclear, err
		}
	}
	open, err := worker.Lookup(cfg.Worker, cfg.WorkerOptions)
	if err != nil {
		return unclear, err
	}
	src, err := open(ctx)
	if err != nil {
		return unclear, err
	}
	if src.Close != nil {
		defer src.Close()
	}
	if src.Slots == nil {
		return unclear, fmt.Errorf("leafsql: %s: no registry says who else has a worker id; it is whoever was given it", src.Name)
	}
	holders, free, err := held(ctx, s, src, layout.Workers())
	switch {
	case err != nil:
		return unclear, err
	case f.json:
		return fine, s.JSON(holders)
	}
	var rows [][]string
	for _, h := range holders {
		until := h.Until.Format(time.RFC3339)
		if h.Over {
			until += ", over"
		}
		rows = append(rows, []string{strconv.Itoa(h.Worker), h.Owner, until})
	}
	s.Table([]string{"WORKER", "OWNER", "UNTIL"}, rows)
	s.Printf("\n%s: %d of %d worker ids are free\n", screen.Plain(src.Name), free, layout.Workers())
	return fine, nil
}

// held reads all worker ids' documents.
func held(ctx context.Context, s *screen.Screen, src worker.Source, workers int) (holders []holder, free int, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	docs := make([]worker.Doc, workers)
	versions := make([]worker.Version, workers)
	var next, read atomic.Int64
	defer s.Progress(func() string { return fmt.Sprintf("%d of %d worker ids read", read.Load(), workers) })()
	var reading sync.WaitGroup
	for range min(askedAtOnce, workers) {
		reading.Go(func() {
			for slot := int(next.Add(1)) - 1; slot < workers && ctx.Err() == nil; slot = int(next.Add(1)) - 1 {
				asked, end := context.WithTimeout(ctx, askedFor)
				doc, version, err := src.Slots.Get(asked, slot)
				end()
				if err != nil {
					cancel(fmt.Errorf("leafsql: %s: worker id %d: %w; who holds which cannot be said", src.Name, slot, err))
				}
				docs[slot], versions[slot] = doc, version
				read.Add(1)
			}
		})
	}
	reading.Wait()
	if err := context.Cause(ctx); err != nil {
		return nil, 0, err
	}
	now := time.Now()
	holders = []holder{}
	for slot, doc := range docs {
		if versions[slot] == "" || doc.Free {
			free++
			continue
		}
		holders = append(holders, holder{slot, doc.Owner, doc.HighWater.UTC(), doc.HighWater.Before(now)})
	}
	return holders, free, nil
}
