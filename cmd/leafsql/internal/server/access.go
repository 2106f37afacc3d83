package server

import (
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
)

func loadTLS(cfg Config) (*tls.Config, error) {
	if cfg.TLSCert == "" && cfg.TLSKey == "" {
		return nil, nil
	}
	if cfg.TLSCert == "" || cfg.TLSKey == "" {
		return nil, errors.New("leafsql: serve: TLS takes a certificate and a key; name both files")
	}
	cert, err := tls.LoadX509KeyPair(cfg.TLSCert, cfg.TLSKey)
	if err != nil {
		return nil, fmt.Errorf("leafsql: serve: TLS: %w; name a certificate and its key, both in PEM", err)
	}
	return &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}}, nil
}

// authorized reports whether a request brings the token: as a bearer's, or, for
// browsers, as the password of any user.
func (s *Server) authorized(r *http.Request) bool {
	if s.cfg.Token == "" {
		return true
	}
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") { // schemes have no case
		_, token, _ = r.BasicAuth()
	}
	want, got := sha256.Sum256([]byte(s.cfg.Token)), sha256.Sum256([]byte(token)) // of one length
	return subtle.ConstantTimeCompare(want[:], got[:]) == 1
}

// warnOpen says that others can use up ids.
func (s *Server) warnOpen(address string) {
	host, _, err := net.SplitHostPort(address)
	if ip := net.ParseIP(host); err != nil || ip == nil || ip.IsLoopback() || s.tls != nil && s.cfg.Token != "" {
		return
	}
	s.log.Warn("leafsql: whoever reaches this address can use up ids and read names of tags", "address", address,
		"way out", "listen on 127.0.0.1, or set a token and TLS")
}
