package main

import (
	"context"
	"errors"

	"github.com/leafsql/leafsql/cmd/leafsql/internal/databases"
	"github.com/leafsql/leafsql/cmd/leafsql/internal/door"
	"github.com/leafsql/leafsql/cmd/leafsql/internal/screen"
)

// runProxy takes programs in any language to their server until ctx ends.
func runProxy(ctx context.Context, s *screen.Screen, args []string) (int, error) {
	f := newFlags(s, "proxy").onDatabase()
	cfg := door.Defaults
	cfg.Listen = nil
	f.StringVar(&cfg.Server, "server", "", "`address` of the server to which clients are taken: host:port, or the path of a unix socket (default the DSN's)")
	f.Func("listen", "`address` to listen at: host:port, or the path of a unix socket; once for each (default 127.0.0.1:3307)", func(address string) error {
		if address == "" {
			return errors.New("it is empty")
		}
		cfg.Listen = append(cfg.Listen, address)
		return nil
	})
	f.StringVar(&cfg.Cert, "cert", "", "`file` with the certificate in PEM, and those that lead to its authority")
	f.StringVar(&cfg.Key, "key", "", "`file` with its key in PEM")
	f.BoolVar(&cfg.RequireTLS, "require-tls", false, "refuse clients without TLS")
	f.BoolVar(&cfg.Insecure, "insecure", false, "listen without -cert on an address that other machines reach")
	f.IntVar(&cfg.MaxConnections, "max-connections", cfg.MaxConnections, "the most connections at a time")
	f.DurationVar(&cfg.FillTimeout, "fill-timeout", cfg.FillTimeout, "the longest a statement waits for ids")
	f.DurationVar(&cfg.Drain, "drain", cfg.Drain, "how long transactions may take to end after SIGTERM")
	f.StringVar(&cfg.Metrics, "metrics", "", "`address` of the status page, /metrics, /healthz and /readyz (default none)")
	if err := f.parse(args, false); err != nil {
		return unclear, err
	}
	var err error
	if cfg.DSN, err = databases.Lookup(f.dsn); err != nil {
		return unclear, err
	}
	d, err := door.New(cfg)
	if err == nil {
		err = d.Run(ctx)
	}
	return fine, err
}
