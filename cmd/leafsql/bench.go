package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leafsql/leafsql/cmd/leafsql/internal/databases"
	"github.com/leafsql/leafsql/cmd/leafsql/internal/screen"
	"github.com/leafsql/leafsql/driver"
	"github.com/leafsql/leafsql/internal/errprefix"
	"github.com/leafsql/leafsql/internal/servererr"
)

// Names of the tables that leafsql bench creates and drops.
const (
	benchFilled  = "leafsql_bench"
	benchCounted = "leafsql_bench_auto_increment"
	benchAlloc   = "leafsql_bench_alloc"
)

// A benchResult is the result of one kind of INSERT.
type benchResult struct {
	Keys   string  `json:"keys_from"`
	Rows   int64   `json:"rows"`
	Rate   float64 `json:"rows_per_second"`
	Median float64 `json:"p50_ms"`
	P99    float64 `json:"p99_ms"`
}

func runBench(ctx context.Context, s *screen.Screen, args []string) (status int, err error) {
	f := newFlags(s, "bench").withDSN().withJSON()
	clients := f.Int("clients", 8, "how many connections insert at the same time")
	length := f.Duration("for", 5*time.Second, "how long each kind of INSERT runs")
	if err := f.parse(args, false); err != nil {
		return exitFailure, err
	}
	if *clients < 1 || *length <= 0 {
		return exitFailure, errors.New("leafsql: bench: -clients must be 1 or more, and -for above 0")
	}
	text, err := databases.ResolveDSN(f.dsn)
	if err != nil {
		return exitFailure, err
	}
	cfg, err := databases.ParseDSN(text)
	if err != nil {
		return exitFailure, err
	}
	cfg.None, cfg.Tables = false, []driver.Rule{{Table: benchFilled}}
	cfg.Store, cfg.AllocTable, cfg.Create, cfg.Worker, cfg.WorkerOptions = "", benchAlloc, true, "", nil
	cfg.Logger = slog.New(slog.DiscardHandler)
	connector, err := driver.NewConnector(cfg)
	if err != nil {
		return exitFailure, err
	}
	db := sql.OpenDB(connector)
	defer db.Close()
	db.SetMaxOpenConns(*clients)
	db.SetMaxIdleConns(*clients)

	for i, text := range []string{
		"CREATE TABLE " + benchFilled + " (id BIGINT NOT NULL PRIMARY KEY, n INT NOT NULL) ENGINE=InnoDB",
		"CREATE TABLE " + benchCounted + " (id BIGINT NOT NULL PRIMARY KEY AUTO_INCREMENT, n INT NOT NULL) ENGINE=InnoDB",
		"CREATE TABLE " + benchAlloc + " (biz_tag VARCHAR(128) NOT NULL PRIMARY KEY, max_id BIGINT NOT NULL, step INT NOT NULL) ENGINE=InnoDB",
	} {
		switch _, err := db.ExecContext(ctx, text); {
		case servererr.Is(err, servererr.TableExists):
			return exitFailure, fmt.Errorf("leafsql: bench: create its tables: %w; an interrupted bench left one: DROP TABLE IF EXISTS %s, %s, %s", err, benchFilled, benchCounted, benchAlloc)
		case err != nil:
			return exitFailure, fmt.Errorf("leafsql: bench: create its tables: %w; use a database in which this user may create tables", err)
		}
		table := []string{benchFilled, benchCounted, benchAlloc}[i]
		defer func() {
			if _, dropErr := db.ExecContext(context.WithoutCancel(ctx), "DROP TABLE "+table); dropErr != nil && err == nil {
				status, err = exitFailure, fmt.Errorf("leafsql: bench: %w; drop table %s", dropErr, table)
			}
		}()
	}
	var figures []benchResult
	for _, kind := range []struct{ keys, table string }{{"AUTO_INCREMENT", benchCounted}, {"leaf_alloc", benchFilled}} {
		fig, err := runInserts(ctx, s, db, kind.table, *clients, *length)
		switch {
		case ctx.Err() != nil:
			return exitFailure, errors.New("leafsql: bench: interrupted, its tables were dropped; run it again")
		case err != nil:
			return exitFailure, fmt.Errorf("leafsql: bench of %s: %w; run it on a server that accepts writes and has no other load", kind.keys, errprefix.Trim(err))
		}
		fig.Keys = kind.keys
		figures = append(figures, fig)
	}
	if f.json {
		return exitOK, s.JSON(figures)
	}
	var rows [][]string
	for _, fig := range figures {
		rows = append(rows, []string{fig.Keys, screen.FormatCount(fig.Rows), screen.FormatCount(int64(math.Round(fig.Rate))), fmt.Sprintf("%.2f ms", fig.Median), fmt.Sprintf("%.2f ms", fig.P99)})
	}
	s.Table([]string{"KEYS FROM", "ROWS", "ROWS/S", "P50", "P99"}, rows, "ROWS", "ROWS/S", "P50", "P99")
	return exitOK, nil
}

// runInserts runs INSERTs of one row each for a given time.
func runInserts(ctx context.Context, s *screen.Screen, db *sql.DB, table string, clients int, length time.Duration) (benchResult, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var rows atomic.Int64
	defer s.Progress(func() string { return s.Sprintf("%s: %d rows", table, rows.Load()) })()
	took := make([][]time.Duration, clients)
	began := time.Now()
	var inserting sync.WaitGroup
	for c := range clients {
		inserting.Go(func() {
			for time.Since(began) < length && ctx.Err() == nil {
				start := time.Now()
				if _, err := db.ExecContext(ctx, "INSERT INTO "+table+" (n) VALUES (?)", c); err != nil {
					cancel(err)
					return
				}
				took[c] = append(took[c], time.Since(start))
				rows.Add(1)
			}
		})
	}
	inserting.Wait()
	passed := time.Since(began)
	if err := context.Cause(ctx); err != nil {
		return benchResult{}, err
	}
	all := slices.Sorted(slices.Values(slices.Concat(took...)))
	at := func(part int) float64 { return float64(all[(len(all)-1)*part/100].Microseconds()) / 1000 }
	return benchResult{Rows: rows.Load(), Rate: float64(rows.Load()) / passed.Seconds(), Median: at(50), P99: at(99)}, nil
}
