package nacos

import (
	"context"
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
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nacos-group/nacos-sdk-go/v2/clients"
	"github.com/nacos-group/nacos-sdk-go/v2/common/constant"
	"github.com/nacos-group/nacos-sdk-go/v2/vo"

	"github.com/leafsql/leafsql/idgen/worker"
	"github.com/leafsql/leafsql/testutil/nacostest"
)

// certificate writes a self-signed one for 127.0.0.1.
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

// TestAccess has servers that want a user and, over gRPC, TLS.
func TestAccess(t *testing.T) {
	for _, v := range modernServers {
		t.Run(string(v), func(t *testing.T) {
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
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				defer cancel()
				l, err := worker.Open(ctx, spec(s), worker.Config{NewRegistry: true, Options: opts})
				if err != nil {
					return err
				}
				return l.Close()
			}
			if err := open(with(nil)); err != nil {
				t.Errorf("all as it should be: %v", err)
			}
			if err := open(with(worker.Options{"CA": "", "TLS": "skip-verify"})); err != nil {
				t.Errorf("without verification: %v", err)
			}
			err := open(with(worker.Options{"Password": "wr0ng!"}))
			if _, login := errors.AsType[*LoginError](err); !login || strings.Contains(err.Error(), "wr0ng") {
				t.Errorf("a wrong password: %v, want a LoginError that does not show it", err)
			}
			err = open(with(worker.Options{"Username": "", "Password": ""}))
			if !isCode(err, codeForbidden) {
				t.Errorf("no user: %v, want a ServerError with code 403", err)
			}
			if err := open(with(worker.Options{"CA": ""})); err == nil {
				t.Error("a certificate of no known authority was accepted")
			}
			if err := open(with(worker.Options{"CA": "", "TLS": "false"})); err == nil {
				t.Error("no TLS, but the server wants it: no error")
			}
			c := look(t, s, with(nil))
			for _, secret := range []string{nacostest.Password} {
				if strings.Contains(Config{Password: secret, Servers: []Server{{Host: "h"}}}.String(), secret) {
					t.Error("String shows the password")
				}
			}
			c.web.current, c.web.renew = "stale", time.Now().Add(time.Hour)
			if _, _, err := c.query(t.Context(), "any"); err != nil {
				t.Errorf("with a token that the server does not take any more: %v", err)
			}
		})
	}
}

// TestOwnClients leases through the SDK's clients of an application, which is
// a registered service itself.
func TestOwnClients(t *testing.T) {
	for _, v := range modernServers {
		t.Run(string(v), func(t *testing.T) {
			s := nacostest.Start(t, v, nacostest.Options{})
			host, port, err := net.SplitHostPort(s.Addr())
			if err != nil {
				t.Fatal(err)
			}
			p, err := strconv.ParseUint(port, 10, 16)
			if err != nil {
				t.Fatal(err)
			}
			dir := t.TempDir()
			param := vo.NacosClientParam{
				ClientConfig: constant.NewClientConfig(
					constant.WithNamespaceId("shop"), constant.WithNotLoadCacheAtStart(true),
					constant.WithLogDir(dir), constant.WithCacheDir(dir), constant.WithLogLevel("error")),
				ServerConfigs: []constant.ServerConfig{*constant.NewServerConfig(host, p)},
			}
			naming, err := clients.NewNamingClient(param)
			if err != nil {
				t.Fatal(err)
			}
			defer naming.CloseClient()
			config, err := clients.NewConfigClient(param)
			if err != nil {
				t.Fatal(err)
			}
			defer config.CloseClient()
			if _, err := naming.RegisterInstance(vo.RegisterInstanceParam{
				ServiceName: "shop", Ip: "10.1.2.3", Port: 8080, Weight: 1, Enable: true, Healthy: true, Ephemeral: true,
			}); err != nil {
				t.Fatal(err)
			}
			cfg := Config{
				ConfigClient: config, NamingClient: naming,
				Instance: Instance{IP: "10.1.2.3", Port: 8080, Metadata: map[string]string{"zone": "a"}},
			}
			began := time.Now()
			src, err := Open(within30s(t), cfg)
			if err != nil {
				t.Fatal(err)
			}
			l, err := worker.Acquire(within30s(t), src, worker.Config{NewRegistry: true})
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("worker id acquired in %v", time.Since(began).Round(time.Millisecond))
			c := look(t, s, worker.Options{"Namespace": "shop"})
			shown := func() (in instance, n int) {
				list, err := c.list(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if len(list) > 0 {
					in = list[0]
				}
				return in, len(list)
			}
			eventually(t, "the application's instance", func() bool {
				in, n := shown()
				return n == 1 && in.IP == "10.1.2.3" && in.Port == 8080 && in.Metadata["zone"] == "a" &&
					in.Metadata[metaWorker] == strconv.Itoa(l.Worker())
			})
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
			eventually(t, "no instance", func() bool { _, n := shown(); return n == 0 })
			if ok, err := config.PublishConfig(vo.ConfigParam{DataId: "d", Group: "g", Content: "c"}); !ok {
				t.Errorf("the application's client was closed: %v", err)
			}
		})
	}
}
