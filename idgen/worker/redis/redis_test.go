package redis

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/leafsql/leafsql/idgen/worker"
)

func TestParseReadsOptions(t *testing.T) {
	cfg, err := parse("h1,h2:7,h3", worker.Options{
		"Master": "m", "Username": "u", "Password": "p", "SentinelUsername": "su", "SentinelPassword": "sp",
		"Database": "2", "Prefix": "shop", "Replicas": "2",
	})
	if err != nil || strings.Join(cfg.Servers, " ") != "h1:26379 h2:7 h3:26379" || cfg.Master != "m" || cfg.Username != "u" || cfg.Password != "p" ||
		cfg.SentinelUsername != "su" || cfg.SentinelPassword != "sp" || cfg.Database != 2 || cfg.Prefix != "shop" || cfg.Replicas != 2 {
		t.Errorf("parse(…) = %+v, %v, want strings.Join(cfg.Servers, \" \") = \"h1:26379 h2:7 h3:26379\", Master = \"m\", Username = \"u\", Password = \"p\", SentinelUsername = \"su\", SentinelPassword = \"sp\", Database = 2, Prefix = \"shop\", Replicas = 2 and no error", cfg, err)
	}
	if cfg, err := parse("h1", worker.Options{"Replicas": "0"}); err != nil || cfg.Replicas != -1 || cfg.Servers[0] != "h1:6379" {
		t.Errorf("parse(\"h1\", worker.Options{\"Replicas\": \"0\"}) = %+v, %v, want Replicas = -1, cfg.Servers[0] = \"h1:6379\" and no error", cfg, err)
	}
}

func TestParseRefusesMistakes(t *testing.T) {
	for address, opts := range map[string]worker.Options{
		"":         nil,
		"h1:":      nil,
		"h1":       {"Databse": "1"},
		"h2":       {"Prefix": "{a}"},
		"h3":       {"Master": "m", "Cluster": "true"},
		"h4,h5":    {"Database": "1"},
		"u:pw@h1":  nil,
		"h6/0":     nil,
		"h7":       {"TLS": "maybe"},
		"h8:99999": nil,
	} {
		_, err := openDSN(address, opts)
		if err == nil {
			t.Errorf("%q, %v is taken, want an error", address, opts)
		} else if !strings.HasPrefix(err.Error(), "leafsql: ") || strings.Contains(err.Error(), "pw@") {
			t.Error(err)
		}
	}
}

func TestConfigShowsNoSecrets(t *testing.T) {
	cfg := Config{Servers: []string{"h1:6379"}, Password: "s3cret", SentinelPassword: "s3cret", Prefix: "leafsql"}
	for _, s := range []string{fmt.Sprint(cfg), fmt.Sprintf("%v %+v %#v", cfg, cfg, cfg), fmt.Sprint(slog.AnyValue(cfg).Resolve())} {
		if strings.Contains(s, "s3cret") {
			t.Errorf("s = %v, want no text with \"s3cret\"", s)
		}
	}
}
