package main

import (
	"context"
	"log/slog"

	"github.com/leafsql/leafsql/cmd/leafsql/internal/screen"
	"github.com/leafsql/leafsql/cmd/leafsql/internal/server"
)

// runServe serves ids over HTTP until ctx is done.
func runServe(ctx context.Context, s *screen.Screen, args []string) (int, error) {
	cfg, err := server.ReadConfig(args, s, s.Texts)
	if err != nil {
		return exitFailure, err
	}
	return runWithLog(s, cfg.LogJSON, func() error {
		srv, err := server.New(cfg)
		if err == nil {
			err = srv.Run(ctx)
		}
		return err
	})
}

// runWithLog runs a process that logs JSON or text.
func runWithLog(s *screen.Screen, json bool, run func() error) (int, error) {
	if json {
		slog.SetDefault(slog.New(slog.NewJSONHandler(s.Err, nil)))
	}
	err := run()
	if err != nil && json { // do not add a line in another format
		slog.Error("leafsql: failed", "err", err)
		return exitFailure, nil
	}
	return exitOK, err
}
