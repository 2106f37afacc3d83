// Package setting parses the part of a DSN that configures a source of worker ids: the servers between the parentheses, and
// the options of this source.
//
//	s := setting.New("Redis", opts)
//	cfg.Prefix = s.Text("Prefix") // leafRedisPrefix
//	cfg.TLS = s.TLS()
//	cfg.Servers = s.Servers(address, "6379")
//	return cfg, s.Err()
//
// Err returns the first mistake. The package opens no connection.
package setting

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"

	"github.com/leafsql/leafsql/idgen/worker"
	"github.com/leafsql/leafsql/internal/spec"
)

// Settings holds the settings of one source.
type Settings struct {
	source string
	opts   worker.Options
	known  []string
	err    error
}

// New returns the Settings of a source. Errors contain its name.
func New(source string, opts worker.Options) *Settings { return &Settings{source: source, opts: opts} }

// Err returns the first mistake, or nil. An option that no method has read is unknown, which is a mistake. Mistakes in
// options are *spec.OptionError values.
func (s *Settings) Err() error {
	err := s.opts.Only(s.known...)
	if option, ok := errors.AsType[*spec.OptionError](err); ok {
		option.Source = s.source
	}
	return cmp.Or(err, s.err)
}

// Text returns an option unchanged.
func (s *Settings) Text(name string) string {
	s.known = append(s.known, name)
	return s.opts[name]
}

func (s *Settings) fail(name, want string) {
	s.err = cmp.Or(s.err, error(&spec.OptionError{Source: s.source, Option: name, Reason: fmt.Sprintf("the value %q is not allowed", s.opts[name]), Fix: "write " + want}))
}

// Flag returns an option that is true or false. A missing option is false.
func (s *Settings) Flag(name string) bool {
	v, err := strconv.ParseBool(cmp.Or(s.Text(name), "false"))
	if err != nil {
		s.fail(name, "true or false")
	}
	return v
}

// Number returns an option that is a whole number of at least 0. ok is false if the option is missing or invalid.
func (s *Settings) Number(name string) (n int, ok bool) {
	text := s.Text(name)
	if text == "" {
		return 0, false
	}
	v, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		s.fail(name, "a whole number from 0")
	}
	return int(v), err == nil
}

// Port returns an option that is a port number, or 0 if it is missing.
func (s *Settings) Port(name string) int {
	text := s.Text(name)
	n, err := strconv.ParseUint(cmp.Or(text, "0"), 10, 16)
	if err != nil || text == "0" {
		s.fail(name, "a port number")
	}
	return int(n)
}

// TLS returns the configuration that the options TLS (true or skip-verify), CA, Cert and Key describe, or nil without TLS.
// It reads the files, so that a mistake in them is found at the start.
func (s *Settings) TLS() *tls.Config {
	mode, ca, cert, key := s.Text("TLS"), s.Text("CA"), s.Text("Cert"), s.Text("Key")
	switch mode {
	case "", "false":
		if ca+cert+key != "" {
			s.fail("TLS", fmt.Sprintf("true if leaf%[1]sCA, leaf%[1]sCert or leaf%[1]sKey is set", s.source))
		}
		return nil
	case "true", "skip-verify":
	default:
		s.fail("TLS", "true, false or skip-verify")
		return nil
	}
	conf := &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: mode == "skip-verify"}
	if ca != "" {
		pem, err := os.ReadFile(ca)
		conf.RootCAs = x509.NewCertPool()
		if err != nil || !conf.RootCAs.AppendCertsFromPEM(pem) {
			s.fail("CA", "the path of a file of certificates in PEM form")
		}
	}
	if cert+key != "" {
		pair, err := tls.LoadX509KeyPair(cert, key)
		if err != nil {
			s.fail("Cert", fmt.Sprintf("the path of a certificate in PEM form, and its key's in leaf%sKey", s.source))
		}
		conf.Certificates = []tls.Certificate{pair}
	}
	return conf
}

// Servers returns the servers of an address such as "h1:6379,h2", each with its port.
func (s *Settings) Servers(address, port string) []string {
	if strings.Contains(address, "@") { // the part before @ may be secret and must not be logged
		s.err = cmp.Or(s.err, fmt.Errorf("leafsql: %s: the servers' addresses contain an @; write only host:port, and set leaf%[1]sUsername and leaf%[1]sPassword", s.source))
		return nil
	}
	var servers []string
	for _, a := range strings.Split(address, ",") {
		server, err := withPort(strings.TrimSpace(a), port)
		if err != nil {
			s.err = cmp.Or(s.err, fmt.Errorf("leafsql: %s: server %q is not of the form host:port; write for example %s(h1:%s,h2:%[4]s)",
				s.source, a, strings.ToLower(s.source), port))
		}
		servers = append(servers, server)
	}
	return servers
}

func withPort(a, port string) (string, error) {
	host := strings.Trim(a, "[]")
	if strings.LastIndexByte(a, ':') > strings.LastIndexByte(a, ']') {
		var err error
		if host, port, err = net.SplitHostPort(a); err != nil {
			return "", err
		}
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || n == 0 || host == "" || strings.ContainsAny(host, "/?# ") {
		return "", fmt.Errorf("not an address: %w", strconv.ErrSyntax)
	}
	return net.JoinHostPort(host, port), nil
}
