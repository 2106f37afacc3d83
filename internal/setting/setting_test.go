package setting

import (
	"crypto/tls"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/leafsql/leafsql/idgen/worker"
	"github.com/leafsql/leafsql/testutil/selfsigned"
)

func TestServersHaveDefaultPort(t *testing.T) {
	for address, want := range map[string][]string{
		"h1":               {"h1:6379"},
		"h1:7, h2":         {"h1:7", "h2:6379"},
		"[::1]:7,[fe80::]": {"[::1]:7", "[fe80::]:6379"},
		"":                 nil,
		"h1:":              nil,
		"h1:70000":         nil,
		"h1:0":             nil,
		"h1,,h2":           nil,
		"h1/0":             nil,
		"a:b:c":            nil,
	} {
		s := New("Redis", nil)
		got := s.Servers(address, "6379")
		if (s.Err() == nil) != (want != nil) || want != nil && !slices.Equal(got, want) {
			t.Errorf("Servers(%q) = %q, error %v; want %q", address, got, s.Err(), want)
		}
	}
	s := New("Redis", nil)
	s.Servers("user:s3cret@h1:6379", "6379")
	if err := s.Err(); err == nil || strings.Contains(err.Error(), "s3cret") || !strings.Contains(err.Error(), "leafRedisPassword") {
		t.Errorf("Err() = %v, want the hint leafRedisPassword without the password", err)
	}
}

func TestUnknownAndBadOptionsAreRefused(t *testing.T) {
	s := New("Redis", worker.Options{"Prefix": "p", "Cluster": "true", "Replicas": "2"})
	n, ok := s.Number("Replicas")
	_, none := s.Number("Database")
	if s.Text("Prefix") != "p" || !s.Flag("Cluster") || s.Flag("Other") || n != 2 || !ok || none || s.Err() != nil {
		t.Errorf("Number(Replicas) = %d, %v, Number(Database) = _, %v, Err() = %v; want 2, true, false, nil", n, ok, none, s.Err())
	}
	for name, read := range map[string]func(*Settings){
		"Prefix":   func(*Settings) {}, // unknown
		"Cluster":  func(s *Settings) { s.Flag("Cluster") },
		"Replicas": func(s *Settings) { s.Number("Replicas") },
		"TLS":      func(s *Settings) { s.TLS() },
		"CA":       func(s *Settings) { s.TLS() },
		"Key":      func(s *Settings) { s.TLS() },
	} {
		s := New("Redis", worker.Options{name: "x"})
		read(s)
		if err := s.Err(); err == nil {
			t.Errorf("%s=x: no error, want one", name)
		}
	}
}

func TestTLSReadsFilesAndModes(t *testing.T) {
	_, certFile, keyFile := selfsigned.Files(t)
	read := func(o worker.Options) (*tls.Config, error) {
		s := New("Redis", o)
		return s.TLS(), s.Err()
	}
	conf, err := read(worker.Options{"TLS": "true", "CA": certFile, "Cert": certFile, "Key": keyFile})
	if err != nil || conf.InsecureSkipVerify || conf.RootCAs == nil || len(conf.Certificates) != 1 {
		t.Errorf("TLS() = %+v, %v; want a verified connection with the certificate", conf, err)
	}
	if conf, err := read(worker.Options{"TLS": "skip-verify"}); err != nil || !conf.InsecureSkipVerify {
		t.Errorf("TLS() with skip-verify = %+v, %v; want InsecureSkipVerify", conf, err)
	}
	if conf, err := read(worker.Options{"TLS": "false"}); err != nil || conf != nil {
		t.Errorf("TLS() with false = %+v, %v; want nil", conf, err)
	}
	empty := filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, o := range []worker.Options{
		{"TLS": "true", "CA": empty}, {"TLS": "true", "CA": empty + "-not"},
		{"TLS": "true", "Cert": certFile}, {"TLS": "true", "Cert": certFile, "Key": empty},
	} {
		if _, err := read(o); err == nil {
			t.Errorf("TLS() with %v: no error, want one", o)
		}
	}
}
