// Package process holds what leafsql serve and leafsql proxy share as processes that others
// reach over the network: TLS, how many connections there may be, how the log is written, and what strangers may read.
package process

import (
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
)

// TLS is a server's, with a certificate and its key from files in PEM; nil where neither is
// named. flags are the names of both.
func TLS(cert, key string, flags string) (*tls.Config, error) {
	if cert == "" && key == "" {
		return nil, nil
	}
	if cert == "" || key == "" {
		return nil, fmt.Errorf("TLS takes a certificate and a key; name both files, with %s", flags)
	}
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		return nil, fmt.Errorf("TLS: %w; name a certificate and its key, both in PEM", err)
	}
	return &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}, nil
}

// LogFormat adds the flag -log-format.
func LogFormat(fs *flag.FlagSet, json *bool) {
	fs.Func("log-format", "`format` of the log on standard error: text, or json with one object a line (default text)", func(v string) error {
		if *json = v == "json"; !*json && v != "text" {
			return errors.New("write text or json")
		}
		return nil
	})
}

// Connections is how many connections there may be at a time, of which each takes so many
// files: no more than wanted, and no more than the process may have open. Where a process may
// open no more files, connections wait unseen, also its own to the database. That fewer are taken than
// somebody asked for is worth a warning, fewer than usual is not.
func Connections(wanted, usual, files int, log *slog.Logger) int {
	open := openFiles()
	most := max(1, (open-open/8)/files)
	if wanted <= most {
		return wanted
	}
	const line = "leafsql: fewer connections are taken than -max-connections says, since this process may open few files"
	said := []any{"files", open, "connections", most, "way out", "raise ulimit -n, or lower -max-connections"}
	if wanted == usual {
		log.Info(line, said...)
	} else {
		log.Warn(line, said...)
	}
	return most
}

// Local reports whether an address that is listened at is reached from this machine alone.
func Local(address string) bool {
	host, _, err := net.SplitHostPort(address)
	ip := net.ParseIP(host)
	return err == nil && (host == "localhost" || ip != nil && ip.IsLoopback())
}
