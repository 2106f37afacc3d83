// Package selfsigned creates a self-signed certificate for servers on 127.0.0.1 and for their clients.
//
//	cert, err := selfsigned.New()
//	certFile, keyFile, err := cert.Write(dir)   // for the server; clients trust certFile
//	conn, err := tls.Dial("tcp", addr, cert.Client())
//
// It is for tests: its key is not secret, and it is valid for a day.
package selfsigned

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// A Certificate is its own authority, and valid for servers and clients.
type Certificate struct {
	cert, key []byte // PEM
	client    *tls.Config
}

// New creates a certificate.
func New() (*Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("selfsigned: %w", err)
	}
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: "leafsql test"},
		NotBefore:             time.Now().Add(-time.Hour),
		NotAfter:              time.Now().Add(24 * time.Hour),
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		IPAddresses:           []net.IP{net.IPv4(127, 0, 0, 1)},
		DNSNames:              []string{"localhost"},
	}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("selfsigned: %w", err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("selfsigned: %w", err)
	}
	c := &Certificate{
		cert: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert}),
		key:  pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}),
	}
	pair, err := tls.X509KeyPair(c.cert, c.key)
	if err != nil {
		return nil, fmt.Errorf("selfsigned: %w", err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(pair.Leaf)
	c.client = &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{pair}}
	return c, nil
}

// Files creates a Certificate, and writes it and its key into a temporary folder of
// the test.
func Files(t testing.TB) (c *Certificate, certFile, keyFile string) {
	t.Helper()
	c, err := New()
	if err == nil {
		certFile, keyFile, err = c.Write(t.TempDir())
	}
	if err != nil {
		t.Fatal(err)
	}
	return c, certFile, keyFile
}

// Client returns the configuration of a client that trusts the certificate, and sends it if the server
// requires one.
func (c *Certificate) Client() *tls.Config { return c.client.Clone() }

// Write writes the certificate and its key as PEM files into a folder.
func (c *Certificate) Write(dir string) (certFile, keyFile string, err error) {
	certFile, keyFile = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	if err := os.WriteFile(certFile, c.cert, 0o644); err != nil {
		return "", "", fmt.Errorf("selfsigned: %w", err)
	}
	if err := os.WriteFile(keyFile, c.key, 0o600); err != nil {
		return "", "", fmt.Errorf("selfsigned: %w", err)
	}
	return certFile, keyFile, nil
}
