package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"github.com/leafsql/leafsql/cmd/leafsql/internal/databases"
	"github.com/leafsql/leafsql/cmd/leafsql/internal/process"
	"github.com/leafsql/leafsql/cmd/leafsql/internal/proxyserver"
	"github.com/leafsql/leafsql/cmd/leafsql/internal/screen"
)

// runProxy proxies clients to their server until ctx is done.
func runProxy(ctx context.Context, s *screen.Screen, args []string) (int, error) {
	f := newFlags(s, "proxy").withDSN()
	f.dsnHint = "the DSN of leafsql's own account"
	cfg := proxyserver.Defaults
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
	f.Func("proxy-protocol", "`networks` of balancers, such as 10.0.0.0/8,127.0.0.1: each connection from there begins with a PROXY header (default none)", func(list string) (err error) {
		cfg.ProxyProtocol, err = networks(list)
		return err
	})
	f.BoolVar(&cfg.ServerProxyProtocol, "server-proxy-protocol", false, "begin connections of clients to the server with a PROXY header, as MariaDB's proxy_protocol_networks allows")
	f.IntVar(&cfg.MaxConnections, "max-connections", cfg.MaxConnections, "the most connections at a time")
	f.IntVar(&cfg.ReadMemory, "read-memory", cfg.ReadMemory, "the most `MiB` of memory for the long commands of all clients")
	f.DurationVar(&cfg.FillTimeout, "fill-timeout", cfg.FillTimeout, "maximum time of a wait for ids")
	f.DurationVar(&cfg.Drain, "drain", cfg.Drain, "how long transactions may take to end after SIGTERM")
	f.StringVar(&cfg.Metrics, "metrics", "", "`address` of the status page, /metrics, /healthz and /readyz (default none)")
	var json bool
	process.AddLogFormatFlag(f.FlagSet, &json)
	if err := f.parse(args, false); err != nil {
		return exitFailure, err
	}
	var err error
	if cfg.DSN, err = databases.ResolveDSN(f.dsn); err != nil {
		return exitFailure, err
	}
	return runWithLog(s, json, func() error {
		server, err := proxyserver.New(cfg)
		if err == nil {
			err = server.Run(ctx)
		}
		return err
	})
}

// networks parses networks and single addresses, separated by commas.
func networks(list string) (found []netip.Prefix, err error) {
	for item := range strings.SplitSeq(list, ",") {
		item = strings.TrimSpace(item)
		network, err := netip.ParsePrefix(item)
		if addr, single := netip.ParseAddr(item); single == nil && addr.Zone() == "" {
			addr = addr.Unmap()
			network, err = netip.PrefixFrom(addr, addr.BitLen()), nil
		}
		if err != nil {
			return nil, fmt.Errorf("%q is neither a network, such as 10.0.0.0/8, nor an address", item)
		}
		found = append(found, network)
	}
	return found, nil
}
