package main

import (
	"context"

	"github.com/leafsql/leafsql/cmd/leafsql/internal/screen"
	"github.com/leafsql/leafsql/cmd/leafsql/internal/server"
)

// runServe serves ids over HTTP until ctx ends.
func runServe(ctx context.Context, s *screen.Screen, args []string) (int, error) {
	cfg, err := server.ReadConfig(args, s.Out)
	if err != nil {
		return unclear, err
	}
	srv, err := server.New(cfg)
	if err != nil {
		return unclear, err
	}
	return fine, srv.Run(ctx)
}
