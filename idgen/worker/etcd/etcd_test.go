package etcd

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/leafsql/leafsql/idgen/worker"
	"github.com/leafsql/leafsql/idgen/worker/etcd/etcdtest"
	"github.com/leafsql/leafsql/internal/leasetest"
	"github.com/leafsql/leafsql/testutil/stopwatch"
)

func TestOptionsAreChecked(t *testing.T) {
	for _, c := range []struct {
		address string
		opts    worker.Options
		want    string
	}{
		{"", nil, `server "" is not of the form host:port; write for example etcd(h1:2379,h2:2379)`},
		{"root:secret@h1", nil, "the servers' addresses contain an @"},
		{"h1,h2:0", nil, `server "h2:0"`},
		{"h1", worker.Options{"Namespace": "x"}, "leafEtcdNamespace: no such parameter; known are leafEtcdUsername, leafEtcdPassword, leafEtcdPrefix, leafEtcdTLS, leafEtcdCA, leafEtcdCert, leafEtcdKey"},
		{"h1", worker.Options{"TLS": "yes"}, `leafEtcdTLS: the value "yes" is not allowed; write true, false or skip-verify`},
		{"h1", worker.Options{"CA": "/nosuch"}, "leafEtcdTLS"},
	} {
		_, err := openDSN(c.address, c.opts)
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("etcd(%s), %v: %v; want %s", c.address, c.opts, err, c.want)
		}
	}
	if _, err := Open(Config{}); err == nil || !strings.Contains(err.Error(), "no server") {
		t.Errorf("without a server: %v, want an error with \"no server\"", err)
	}
}

// TestAccessNeedsTLSAndUser leases with the TLS settings and the user of a DSN, and not without them.
func TestAccessNeedsTLSAndUser(t *testing.T) {
	t.Parallel()
	s := etcdtest.Start(t, etcdtest.Config{TLS: true, Password: "secret"})
	right := worker.Options{"TLS": "true", "CA": s.CertFile, "Cert": s.CertFile, "Key": s.KeyFile, "Username": "root", "Password": "secret", "Prefix": "a/b"}
	lease := func(opts worker.Options) error {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		open, err := openDSN(s.Addr, opts)
		if err != nil {
			return err
		}
		k, err := worker.Keep(open, worker.Config{NewRegistry: true})
		if err != nil {
			return err
		}
		defer k.Close()
		status, err := k.Wait(ctx)
		if err == nil && (!strings.Contains(status.Registry, s.Addr) || strings.Contains(status.Registry, "secret")) {
			t.Errorf("the registry's name is %q", status.Registry)
		}
		return err
	}
	leasetest.Eventually(t, "a worker id", func() bool { // on a busy machine an answer may be late
		err := lease(right)
		if err != nil {
			t.Log(err)
		}
		return err == nil
	})
	for option, wrong := range map[string]string{"Password": "guess", "Username": "", "CA": ""} {
		opts := worker.Options{}
		for k, v := range right {
			opts[k] = v
		}
		if opts[option] = wrong; wrong == "" {
			delete(opts, option)
		}
		if option == "Username" {
			delete(opts, "Password")
		}
		if err := lease(opts); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("with %s=%q: %v, want an error without \"secret\"", option, wrong, err)
		} else {
			t.Logf("with %s=%q: %v", option, wrong, err)
		}
	}
}

// Calls do not wait for a cluster that does not answer: they fail at once, and the search
// is repeated.
func TestUnansweredCallsFailAtOnce(t *testing.T) {
	t.Parallel()
	open, err := openDSN("127.0.0.1:1,127.0.0.1:2", nil)
	if err != nil {
		t.Fatal(err)
	}
	src, err := open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	took := stopwatch.Start(t)
	if _, _, err := src.Slots.Get(ctx, 0); err == nil || took() > 9*time.Second {
		t.Errorf("a read: %v after %v, want an error and took() at most 9s", err, took())
	}
	if _, ok, err := src.Slots.Put(ctx, 0, worker.Doc{Nonce: "initial", Free: true}, ""); err == nil || ok {
		t.Errorf("a write: %v, %v, want an error and ok = false", ok, err)
	}
}
