package server

import (
	"bytes"
	"errors"
	"flag"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/leafsql/leafsql/driver"
)

func writeFile(t *testing.T, name, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestFlagsOverrideEnvironmentAndFile: flags override the environment, which overrides the file.
func TestFlagsOverrideEnvironmentAndFile(t *testing.T) {
	const dsn = "app:s3cret@tcp(db:3306)/shop"
	file := writeFile(t, "leafsql.yaml", `
# all of them
dsn: `+dsn+`
listen: 127.0.0.1:1
no-segments: true
tls-cert: cert.pem
tls-key: key.pem
token: 00123
timeout: 1s
max-block: 2
max-requests: 3
max-connections: 4
drain: 5s
log-format: json
`)
	t.Setenv("LEAFSQL_CONFIG", file)
	t.Setenv("LEAFSQL_MAX_BLOCK", "20")
	t.Setenv("LEAFSQL_MAX_REQUESTS", "30")
	t.Setenv("LEAFSQL_LISTEN", "")
	got, err := ReadConfig([]string{"-max-requests=300", "-drain", "50s"}, nil, nil)
	want := Config{
		DSN: dsn, Listen: "127.0.0.1:1", NoSegments: true, TLSCert: "cert.pem", TLSKey: "key.pem", Token: "00123",
		Timeout: time.Second, MaxBlock: 20, MaxRequests: 300, MaxConnections: 4, Drain: 50 * time.Second, LogJSON: true,
	}
	if err != nil || got != want {
		t.Errorf("ReadConfig() = %+v, %v, want\n%+v", got, err, want)
	}
	for _, name := range []string{"CONFIG", "MAX_BLOCK", "MAX_REQUESTS"} {
		t.Setenv("LEAFSQL_"+name, "")
	}
	t.Setenv("OTHER", dsn)
	if got, err := ReadConfig([]string{"-dsn", "env:OTHER"}, nil, nil); err != nil || got.DSN != dsn || got.Listen != "127.0.0.1:8080" || got.MaxBlock != 10_000 {
		t.Errorf("ReadConfig() = %+v, %v, want the DSN and the defaults", got, err)
	}
	var help bytes.Buffer
	if _, err := ReadConfig([]string{"-h"}, &help, nil); !errors.Is(err, flag.ErrHelp) || !strings.Contains(help.String(), "-max-block") {
		t.Errorf("ReadConfig(-h) error = %v, want flag.ErrHelp and a help text with -max-block:\n%s", err, help.String())
	}
}

// TestBadSettingsAreErrorsWithHints: unreadable settings are errors with a hint, and without secrets.
func TestBadSettingsAreErrorsWithHints(t *testing.T) {
	for name, args := range map[string][]string{
		"no DSN":              nil,
		"no such variable":    {"-dsn", "env:LEAFSQL_NO_SUCH"},
		"unknown flag":        {"-dns", "x"},
		"an argument":         {"-dsn", "x", "serve"},
		"no number":           {"-dsn", "x", "-max-block", "many"},
		"no file":             {"-config", "/no/such/file.yaml"},
		"unknown key":         {"-config", writeFile(t, "a.yaml", "dns: s3cret")},
		"no number in a file": {"-config", writeFile(t, "a.yaml", "max-block: s3cret")},
		"a list":              {"-config", writeFile(t, "a.yaml", "dsn: [s3cret]")},
		"twice":               {"-config", writeFile(t, "a.yaml", "dsn: s3cret\ndsn: s3cret")},
		"not a mapping":       {"-config", writeFile(t, "a.yaml", "s3cret")},
		"no YAML":             {"-config", writeFile(t, "a.yaml", "dsn: 's3cret")},
		"no JDBC":             {"-config", writeFile(t, "leaf.properties", "leaf.jdbc.url=mysql://h/db?password=s3cret")},
		"several servers":     {"-config", writeFile(t, "leaf.properties", "leaf.jdbc.url=jdbc:mysql://h1,h2/db?password=s3cret")},
		"no database":         {"-config", writeFile(t, "leaf.properties", "leaf.jdbc.url=jdbc:mysql://h/?password=s3cret")},
		"unknown TLS":         {"-config", writeFile(t, "leaf.properties", "leaf.jdbc.url=jdbc:mysql://h/db?sslMode=s3cret")},
		"no ZooKeeper":        {"-config", writeFile(t, "leaf.properties", "leaf.jdbc.url=jdbc:mysql://h/db\nleaf.snowflake.enable=true")},
		"no properties":       {"-config", writeFile(t, "leaf.properties", `leaf.jdbc.password=s3cret\u00`)},
	} {
		if _, err := ReadConfig(args, nil, nil); err == nil || !strings.HasPrefix(err.Error(), "leafsql: serve") || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: error %v, want one without the password", name, err)
		}
	}
	for name, cfg := range map[string]Config{
		"no database":       {DSN: "app:s3cret@tcp(db:3306)/"},
		"no DSN":            {DSN: "app:s3cret"},
		"a negative limit":  {DSN: "app:s3cret@tcp(db:3306)/shop", MaxBlock: -1},
		"a key alone":       {DSN: "app:s3cret@tcp(db:3306)/shop", TLSKey: "key.pem"},
		"no certificate":    {DSN: "app:s3cret@tcp(db:3306)/shop", TLSKey: "/no/key.pem", TLSCert: "/no/cert.pem"},
		"an unknown source": {DSN: "app:s3cret@tcp(db:3306)/shop?leafWorker=nosuch()"},
		"a wrong layout":    {DSN: "app:s3cret@tcp(db:3306)/shop?leafSnowflake=1-2-3"},
	} {
		s, err := New(cfg)
		if err == nil {
			s.Close()
		}
		if err == nil || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: error %v, want one without the password", name, err)
		}
	}
}

// TestLeafPropertiesAreUnderstood: the configuration of Java Leaf is understood.
func TestLeafPropertiesAreUnderstood(t *testing.T) {
	read := func(text string) (*driver.Config, Config) {
		t.Helper()
		cfg, err := ReadConfig([]string{"-config", writeFile(t, "leaf.properties", text)}, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		dc, err := driver.ParseDSN(cfg.DSN)
		if err != nil {
			t.Fatal(err)
		}
		return dc, cfg
	}
	dc, cfg := read(`# of a Leaf that runs
leaf.name=com.sankuai.leaf.opensource.test
leaf.segment.enable=true
leaf.jdbc.url=jdbc:mysql://10.0.0.9:3307/leaf?autoReconnect=true&useUnicode=true&characterEncoding=UTF-8&useSSL=false
leaf.jdbc.username = leaf
leaf.jdbc.password = p@ss/w\u00f6:rd=${x}

leaf.snowflake.enable=true
leaf.snowflake.zk.address=zk1:2181,zk2:2181
leaf.snowflake.port=18080
`)
	if m := dc.MySQL; m.Addr != "10.0.0.9:3307" || m.DBName != "leaf" || m.User != "leaf" || m.Passwd != "p@ss/wö:rd=${x}" || m.TLSConfig != "" {
		t.Errorf("%+v", m)
	}
	if dc.Worker != "zookeeper(zk1:2181,zk2:2181)" || dc.WorkerOptions["Name"] != "com.sankuai.leaf.opensource.test" || cfg.NoSegments {
		t.Errorf("%+v, %+v", dc, cfg)
	}
	dc, cfg = read("leaf.segment.enable=false\nleaf.snowflake.enable=false\nleaf.jdbc.url=jdbc:mysql://[::1]/leaf?sslMode=VERIFY_IDENTITY&user=u")
	if m := dc.MySQL; m.Addr != "[::1]:3306" || m.User != "u" || m.TLSConfig != "true" || dc.Worker != "" || !cfg.NoSegments {
		t.Errorf("%+v, %+v, %+v", m, dc, cfg)
	}
}

// TestUnknownLeafPropertiesAreLogged: keys of leaf.properties that have no effect are logged without their values, and the
// keys of Java Leaf are not.
func TestUnknownLeafPropertiesAreLogged(t *testing.T) {
	const known = "leaf.jdbc.url=jdbc:mysql://127.0.0.1:1/leaf\nleaf.segment.enable=true\nleaf.snowflake.port=8080\nspring.name=s3cret\n"
	for text, want := range map[string]string{
		known: "",
		known + "leaf.snowflake.enabled=s3cret\nleaf.snowflake.mode=local": `keys="leaf.snowflake.enabled, leaf.snowflake.mode"`,
	} {
		cfg, err := ReadConfig([]string{"-config", writeFile(t, "leaf.properties", text)}, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		var log bytes.Buffer
		cfg.Logger = slog.New(slog.NewTextHandler(&log, nil))
		s, err := New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		s.Close()
		if got := log.String(); strings.Contains(got, "s3cret") || (want == "") != (got == "") || !strings.Contains(got, want) {
			t.Errorf("log = %q, want %q and no values, for\n%s", got, want, text)
		}
	}
}
