package main

import (
	"context"
	"io"

	"github.com/leafsql/leafsql/cmd/leafsql/internal/server"
	_ "github.com/leafsql/leafsql/nacos" // leafWorker=nacos(…)
)

// runServe serves ids over HTTP until ctx ends.
func runServe(ctx context.Context, out io.Writer, args []string) error {
	cfg, err := server.ReadConfig(args, out)
	if err != nil {
		return err
	}
	s, err := server.New(cfg)
	if err != nil {
		return err
	}
	return s.Run(ctx)
}
