package nacos

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/leafsql/leafsql/idgen/worker"
)

func TestSourceIsRegistered(t *testing.T) {
	if _, err := worker.Lookup("nacos(n1)", nil); err != nil {
		t.Errorf("Lookup(\"nacos(n1)\") = %v, want the registered source", err)
	}
}

func TestParseReadsOptions(t *testing.T) {
	c, err := parse("n1, [::1]:8850,n3:80", worker.Options{
		"Namespace": "public", "Service": "s", "Port": "9001", "IP": "10.0.0.1", "Cluster": "c",
		"GRPCPort": "9999", "ContextPath": "/reg/", "Username": "u", "Password": "p",
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.complete(); err != nil {
		t.Fatal(err)
	}
	if c.String() != "n1:8848,[::1]:8850,n3:80" || c.Servers[1].grpc() != "[::1]:9999" {
		t.Errorf("servers %s, gRPC %s, want c.String() = \"n1:8848,[::1]:8850,n3:80\" and c.Servers[1].grpc() = \"[::1]:9999\"", c, c.Servers[1].grpc())
	}
	want := fmt.Sprint("", "DEFAULT_GROUP", "s", "/reg", Instance{IP: "10.0.0.1", Port: 9001, Cluster: "c"})
	if got := fmt.Sprint(c.Namespace, c.Group, c.Service, c.ContextPath, c.Instance); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	c, err = parse("n1:8848", nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.complete(); err != nil {
		t.Fatal(err)
	}
	if c.name() != "Nacos n1:8848, default namespace, group DEFAULT_GROUP, service leafsql" || c.urls()[0] != "http://n1:8848/nacos" {
		t.Errorf("%s at %v, want c.name() = \"Nacos n1:8848, default namespace, group DEFAULT_GROUP, service leafsql\" and c.urls()[0] = \"http://n1:8848/nacos\"", c.name(), c.urls())
	}
	if c.Servers[0].GRPCPort != 9848 || c.Service != "leafsql" || c.ContextPath != "/nacos" || c.Instance.IP == "" {
		t.Errorf("defaults: %+v, want c.Servers[0].GRPCPort = 9848, c.Service = \"leafsql\", c.ContextPath = \"/nacos\" and c.Instance.IP other than \"\"", c.Servers)
	}
}

func TestParseRefusesMistakes(t *testing.T) {
	for _, c := range []struct {
		address string
		opts    worker.Options
		want    string // part of the error
	}{
		{"", nil, "host:port"},
		{"n1:8848,", nil, "host:port"},
		{"n1:8848,u:hunter2@n2:8848", nil, "leafNacosPassword"},
		{"http://u:hunter2@n1:8848", nil, "leafNacosPassword"},
		{"u:hunter2,x@y@n1", nil, "leafNacosPassword"},
		{"http://n1:8848", nil, "host:port"},
		{"n1:x", nil, "host:port"},
		{"n1:0", nil, "host:port"},
		{"n1:1:2", nil, "host:port"},
		{"n1", worker.Options{"Namspace": "n"}, "Namespace"},
		{"n1", worker.Options{"Service": "a b"}, "letters"},
		{"n1", worker.Options{"Group": "a@@b"}, "letters"},
		{"n1", worker.Options{"Port": "70000"}, "leafNacosPort"},
		{"n1", worker.Options{"GRPCPort": "x"}, "leafNacosGRPCPort"},
		{"n1", worker.Options{"TLS": "yes please"}, "leafNacosTLS"},
		{"n1", worker.Options{"CA": "/ca.pem"}, "leafNacosTLS"},
		{"n1", worker.Options{"TLS": "true", "CA": "/is/not/there.pem"}, "leafNacosCA"},
		{"n1", worker.Options{"TLS": "true", "Cert": "/is/not/there.pem"}, "leafNacosCert"},
		{"n1", worker.Options{"PlainHTTP": "perhaps"}, "leafNacosPlainHTTP"},
	} {
		cfg, err := parse(c.address, c.opts)
		if err == nil {
			err = cfg.complete()
		}
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "leafsql: ") || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("nacos(%s) %v: %v, want an error that names %s", c.address, c.opts, err, c.want)
		}
	}
	for _, cfg := range []Config{{}, {NamingClient: &sdkNamingStub{}}} {
		if _, err := Open(t.Context(), cfg); err == nil {
			t.Error("Open() without servers and clients = <nil>, want an error")
		}
	}
}

type sdkNamingStub struct{ namingClient }

func TestConfigShowsNoSecret(t *testing.T) {
	cfg := Config{Servers: []Server{{Host: "n1", Port: 8848}}, Username: "u", Password: "s3cret"}
	var log strings.Builder
	slog.New(slog.NewTextHandler(&log, nil)).Info("x", "cfg", cfg, "ptr", &cfg)
	for _, s := range []string{fmt.Sprintf("%v %+v %#v %s", cfg, cfg, cfg, &cfg), log.String()} {
		if strings.Contains(s, "s3cret") || !strings.Contains(s, "n1:8848") {
			t.Errorf("s = %v, want no text with \"s3cret\" and text with \"n1:8848\"", s)
		}
	}
}
