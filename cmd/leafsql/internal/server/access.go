package server

import (
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"fmt"
	"net/http"
	"strings"

	"github.com/leafsql/leafsql/cmd/leafsql/internal/process"
)

func loadTLS(cfg Config) (*tls.Config, error) {
	of, err := process.LoadTLS(cfg.TLSCert, cfg.TLSKey, "-tls-cert and -tls-key")
	if err != nil {
		return nil, fmt.Errorf("leafsql: serve: %w", err)
	}
	if of != nil {
		of.NextProtos = []string{"h2", "http/1.1"}
	}
	return of, nil
}

// isAuthorized reports whether a request has the token: as a bearer token or, for browsers, as the password of
// any user.
func (s *Server) isAuthorized(r *http.Request) bool {
	if s.cfg.Token == "" {
		return true
	}
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") { // schemes are case-insensitive
		_, token, _ = r.BasicAuth()
	}
	want, got := sha256.Sum256([]byte(s.cfg.Token)), sha256.Sum256([]byte(token)) // hashes have equal lengths, so the time of the comparison is constant
	return subtle.ConstantTimeCompare(want[:], got[:]) == 1
}

// warnOpen logs a warning if other hosts can reach the address, and TLS or the token is missing.
func (s *Server) warnOpen(address string) {
	if process.IsLocal(address) || s.tls != nil && s.cfg.Token != "" {
		return
	}
	s.log.Warn("leafsql: every client that can connect to this address can use up ids and read the names of tags", "address", address,
		"hint", "listen on 127.0.0.1, or set a token and TLS")
}
