// Package process contains the parts that leafsql serve and leafsql proxy share as network servers: TLS, the
// limit of connections, the format of the log, and the errors that clients may read.
package process

import (
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
)

// LoadTLS returns a server's configuration with a certificate and its key, from PEM files, or nil if both names
// are empty. flags names both flags, for errors.
func LoadTLS(cert, key string, flags string) (*tls.Config, error) {
	if cert == "" && key == "" {
		return nil, nil
	}
	if cert == "" || key == "" {
		return nil, fmt.Errorf("TLS needs a certificate and a key; set %s", flags)
	}
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		return nil, fmt.Errorf("TLS: %w; name a certificate and its key, both in PEM", err)
	}
	return &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}, nil
}

// AddLogFormatFlag adds the flag -log-format. It sets *json to true for json.
func AddLogFormatFlag(fs *flag.FlagSet, json *bool) {
	fs.Func("log-format", "`format` of the log on standard error: text, or json with one object a line (default text)", func(v string) error {
		if *json = v == "json"; !*json && v != "text" {
			return errors.New("write text or json")
		}
		return nil
	})
}

// LimitConnections returns the maximum number of connections, each of which takes the given number of files: at
// most wanted, and at most the number that the process's limit of open files allows. Without this limit, a process
// that runs out of files would leave new connections waiting without a warning, including its own to the database.
// If it lowers wanted, it logs a warning, or a line at level Info if wanted is the default, def.
func LimitConnections(wanted, def, files int, log *slog.Logger) int {
	open := maxOpenFiles()
	limit := max(1, (open-open/8)/files)
	if wanted <= limit {
		return wanted
	}
	const line = "leafsql: fewer connections than -max-connections are accepted, because of the limit of open files"
	attrs := []any{"files", open, "connections", limit, "hint", "raise ulimit -n, or lower -max-connections"}
	if wanted == def {
		log.Info(line, attrs...)
	} else {
		log.Warn(line, attrs...)
	}
	return limit
}

// IsLocal reports whether a listening address can only be reached from this machine.
func IsLocal(address string) bool {
	host, _, err := net.SplitHostPort(address)
	ip := net.ParseIP(host)
	return err == nil && (host == "localhost" || ip != nil && ip.IsLoopback())
}
