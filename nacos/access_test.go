package nacos

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/leafsql/leafsql/idgen/worker"
	"github.com/leafsql/leafsql/nacos/internal/api"
	"github.com/leafsql/leafsql/testutil/nacostest"
)

// certificate writes a self-signed certificate for 127.0.0.1 and returns the paths
// of its files.
func certificate(t *testing.T) (cert, key string) {
	t.Helper()
	priv, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	tmpl := x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "nacos"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, &tmpl, &tmpl, &priv.PublicKey, priv)
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(priv)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write := func(name, kind string, b []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: b}), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	return write("cert.pem", "CERTIFICATE", der), write("key.pem", "PRIVATE KEY", pkcs8)
}

// TestAccessNeedsUserAndTLS: a server that requires a user and, over gRPC, TLS.
func TestAccessNeedsUserAndTLS(t *testing.T) { testAccess(t, nacostest.V3) }

func testAccess(t *testing.T, v nacostest.Version) {
	t.Parallel()
	cert, key := certificate(t)
	s := nacostest.Start(t, v, nacostest.Options{Auth: true, Properties: []string{
		"nacos.remote.server.rpc.tls.enableTls=true",
		"nacos.remote.server.rpc.tls.compatibility=false",
		"nacos.remote.server.rpc.tls.certChainFile=file:" + cert,
		"nacos.remote.server.rpc.tls.certPrivateKey=file:" + key,
	}})
	with := func(more worker.Options) worker.Options {
		o := worker.Options{
			"Username": nacostest.User, "Password": nacostest.Password,
			"TLS": "true", "CA": cert, "PlainHTTP": "true",
		}
		for k, v := range more {
			o[k] = v
		}
		return o
	}
	open := func(opts worker.Options) error {
		k, err := lease(t, specOf(s), opts, worker.Config{NewRegistry: true, Workers: 4})
		if err != nil {
			return err
		}
		return k.Close()
	}
	// A server that has just started, or is busy, sometimes does not answer in time.
	for name, opts := range map[string]worker.Options{"all as it should be": nil, "without verification": {"CA": "", "TLS": "skip-verify"}} {
		eventually(t, name, func() bool {
			err := open(with(opts))
			if err != nil {
				t.Log(err)
			}
			return err == nil
		})
	}
	refused := func(name string, opts worker.Options) (e *api.LoginError, err error) {
		eventually(t, name, func() (login bool) {
			err = open(with(opts))
			t.Log(err)
			e, login = errors.AsType[*api.LoginError](err)
			return login || err == nil
		})
		return e, err
	}
	if e, err := refused("a wrong password", worker.Options{"Password": "wr0ng!"}); e == nil || strings.Contains(err.Error(), "wr0ng") {
		t.Errorf("a wrong password: %v, want a LoginError that does not show it", err)
	}
	if e, err := refused("no user", worker.Options{"Username": "", "Password": ""}); e == nil || e.User != "" ||
		!strings.Contains(err.Error(), "127.0.0.1:") || !strings.Contains(err.Error(), "leafNacosUsername") {
		t.Errorf("no user: %v, want a LoginError that names the server", err)
	}
	c := look(t, s, with(worker.Options{"CA": ""}))
	if _, _, err := c.query(t.Context(), "any"); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("a certificate of no known authority: %v, want an error with \"certificate\"", err)
	}
	c = look(t, s, with(worker.Options{"CA": "", "TLS": "false"}))
	if _, _, err := c.query(t.Context(), "any"); err == nil {
		t.Error("no TLS, but the server wants it: no error")
	}
	look(t, s, with(nil))
}
