package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leafsql/leafsql/cmd/leafsql/internal/check"
	"github.com/leafsql/leafsql/cmd/leafsql/internal/databases"
	"github.com/leafsql/leafsql/cmd/leafsql/internal/screen"
	"github.com/leafsql/leafsql/driver"
	"github.com/leafsql/leafsql/idgen/snowflake"
	"github.com/leafsql/leafsql/idgen/worker"
	_ "github.com/leafsql/leafsql/idgen/worker/etcd" // sources of worker ids
	_ "github.com/leafsql/leafsql/idgen/worker/redis"
	_ "github.com/leafsql/leafsql/idgen/worker/zookeeper"
	"github.com/leafsql/leafsql/internal/errprefix"
	"github.com/leafsql/leafsql/internal/servererr"
	"github.com/leafsql/leafsql/internal/spec"
	_ "github.com/leafsql/leafsql/nacos"
)

// A holder is the process that holds a worker id, or has ended without releasing it.
type holder struct {
	Worker  int       `json:"worker"`
	Owner   string    `json:"owner"`
	Until   time.Time `json:"until"` // the latest time that the process may put into an id
	Expired bool      `json:"over"`  // Until has passed: the process has ended without releasing the worker id, or cannot renew it
}

// Limits of reads of the registry.
const (
	parallelReads = 16
	readTimeout   = 10 * time.Second // timeout of each document
)

func runWorkers(ctx context.Context, s *screen.Screen, args []string) (int, error) {
	f := newFlags(s, "workers").withDSN().withJSON()
	if err := f.parse(args, false); err != nil {
		return exitFailure, err
	}
	text, err := databases.ResolveDSN(f.dsn)
	if err != nil {
		return exitFailure, err
	}
	cfg, err := databases.ParseDSN(text)
	if err != nil {
		return exitFailure, err
	}
	layout := cmp.Or(cfg.Snowflake, snowflake.Leaf)
	name, holders, free, err := readHolders(ctx, f, cfg, layout.Workers())
	switch {
	case err != nil:
		return exitFailure, err
	case f.json:
		return exitOK, s.JSON(holders)
	}
	var rows [][]string
	for _, h := range holders {
		until := h.Until.Format(time.RFC3339)
		if h.Expired {
			until += s.Texts.Text(", over")
		}
		rows = append(rows, []string{strconv.Itoa(h.Worker), h.Owner, until})
	}
	s.Table([]string{"WORKER", "OWNER", "UNTIL"}, rows, "WORKER")
	s.Printf("\n%s: %d of %d worker ids are free\n", screen.ReplaceControl(name), free, layout.Workers())
	return exitOK, nil
}

// readHolders reads the holders from the source of the DSN, with the source's name and the number of free worker
// ids.
func readHolders(ctx context.Context, f *flags, cfg *driver.Config, workers int) (name string, holders []holder, free int, err error) {
	switch source, address, err := spec.Parse(cmp.Or(cfg.Worker, "mysql()")); {
	case err != nil || source != "mysql":
	case address != "" || len(cfg.WorkerOptions) > 0:
		return "", nil, 0, errors.New("leafsql: workers: mysql() takes no address and no parameters; its table is in the database of leaf_alloc, which leafStore and leafAllocTable set")
	default:
		return readLeaseTable(ctx, f, workers)
	}
	open, err := worker.Lookup(cfg.Worker, cfg.WorkerOptions)
	if err != nil {
		return "", nil, 0, err
	}
	src, err := open(spec.WithReadOnly(ctx))
	if err != nil {
		return "", nil, 0, err
	}
	if src.Close != nil {
		defer src.Close()
	}
	if src.Slots == nil {
		return "", nil, 0, fmt.Errorf("leafsql: %s: fixed worker ids have no registry; check the configuration that assigns them", src.Name)
	}
	holders, free, err = listHolders(ctx, f.screen, src, workers)
	return src.Name, holders, free, err
}

// readLeaseTable reads the holders from the default source, the table leaf_worker in the database of leaf_alloc.
func readLeaseTable(ctx context.Context, f *flags, workers int) (name string, holders []holder, free int, err error) {
	set, err := databases.Open(ctx, f.dsn, f.shards)
	if err != nil {
		return "", nil, 0, err
	}
	defer set.Close()
	table := set.Store.LeaseTable()
	name = table.Label + ", table " + table.PlainName()
	holders = []holder{}
	err = table.Each(ctx, func(scan func(...any) error) error {
		var h holder
		var until int64
		err := scan(&h.Worker, &h.Owner, &until)
		h.Until = time.UnixMilli(until).UTC()
		h.Expired = h.Until.Before(time.Now())
		holders = append(holders, h)
		return err
	}, "SELECT worker_id, owner, hw FROM "+table.QuotedName()+" WHERE worker_id BETWEEN 0 AND ? AND free = 0 ORDER BY worker_id", workers-1)
	switch {
	case servererr.Is(err, servererr.NoSuchTable):
		err = fmt.Errorf("leafsql: %s has no table %s: no snowflake was issued with the default source, mysql(); create it with leafsql init, or set the program's leafWorker", table.Label, table.PlainName())
	case databases.IsDenied(err):
		err = fmt.Errorf("leafsql: %s: %w; grant this user SELECT on it", name, err)
	case err != nil:
		err = fmt.Errorf("leafsql: %s: %w; check that server, since the holders cannot be listed", name, err)
	}
	return name, holders, workers - len(holders), err
}

// readDocuments reads the documents of all worker ids. A missing document has no version.
func readDocuments(ctx context.Context, s *screen.Screen, src worker.Source, workers int) ([]worker.Doc, []worker.Version, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	docs := make([]worker.Doc, workers)
	versions := make([]worker.Version, workers)
	var next, read atomic.Int64
	defer s.Progress(func() string { return s.Sprintf("%d of %d worker ids read", read.Load(), workers) })()
	var reading sync.WaitGroup
	for range min(parallelReads, workers) {
		reading.Go(func() {
			for slot := int(next.Add(1)) - 1; slot < workers && ctx.Err() == nil; slot = int(next.Add(1)) - 1 {
				asked, end := context.WithTimeout(ctx, readTimeout)
				doc, version, err := src.Slots.Get(asked, slot)
				end()
				if err != nil {
					cancel(fmt.Errorf("leafsql: %s: worker id %d: %w; check that server, since the holders cannot be listed", src.Name, slot, errprefix.Trim(err)))
				}
				docs[slot], versions[slot] = doc, version
				read.Add(1)
			}
		})
	}
	reading.Wait()
	if err := context.Cause(ctx); err != nil {
		return nil, nil, err
	}
	return docs, versions, nil
}

// listHolders returns the holders of worker ids, and the number of free worker ids.
func listHolders(ctx context.Context, s *screen.Screen, src worker.Source, workers int) (holders []holder, free int, err error) {
	docs, versions, err := readDocuments(ctx, s, src, workers)
	if err != nil {
		return nil, 0, err
	}
	if !slices.ContainsFunc(versions, func(v worker.Version) bool { return v != "" }) {
		asked, end := context.WithTimeout(ctx, readTimeout)
		defer end()
		switch exists, err := check.HasRegistry(asked, src); {
		case err != nil:
			return nil, 0, fmt.Errorf("leafsql: %w; check that server, since the holders cannot be listed", err)
		case !exists:
			return nil, 0, fmt.Errorf("leafsql: %s: there is no registry of worker ids, so no process has leased one here; create it with leafsql init, or correct leafWorker and its options", src.Name)
		}
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
