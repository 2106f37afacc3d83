package zookeeper

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/leafsql/leafsql/idgen/worker"
)

func TestParseReadsOptions(t *testing.T) {
	cfg, err := parse("h1,h2:7", worker.Options{"Root": "/a/b", "Name": "shop", "Username": "u", "Password": "p"})
	if err != nil || strings.Join(cfg.Servers, " ") != "h1:2181 h2:7" || cfg.folder() != "/a/b/shop/leafsql" || cfg.forever() != "/a/b/shop/forever" ||
		cfg.Username != "u" || cfg.Password != "p" {
		t.Errorf("parse(…) = %v, %v, want strings.Join(cfg.Servers, \" \") = \"h1:2181 h2:7\", cfg.folder() = \"/a/b/shop/leafsql\", cfg.forever() = \"/a/b/shop/forever\", Username = \"u\", Password = \"p\" and no error", cfg, err)
	}
}

func TestParseRefusesMistakes(t *testing.T) {
	for address, opts := range map[string]worker.Options{
		"":       nil,
		"h1/x":   nil,
		"u:p@h1": nil,
		"h1":     {"Nmae": "shop"},
		"h2":     {"Name": "a/b"},
		"h3":     {"Root": "snowflake"},
		"h4":     {"Root": "/snowflake/"},
		"h5":     {"Password": "p"},
		"h6":     {"Username": "a:b", "Password": "p"},
		"h7":     {"Name": ".."},
	} {
		_, err := openDSN(address, opts)
		if err == nil {
			t.Errorf("%q, %v is taken, want an error", address, opts)
		} else if !strings.HasPrefix(err.Error(), "leafsql: ") {
			t.Error(err)
		}
	}
}

func TestConfigShowsNoSecrets(t *testing.T) {
	cfg := Config{Servers: []string{"h1:2181"}, Password: "s3cret"}
	for _, s := range []string{fmt.Sprintf("%v %+v %#v", cfg, cfg, cfg), fmt.Sprint(slog.AnyValue(cfg).Resolve())} {
		if strings.Contains(s, "s3cret") {
			t.Errorf("s = %v, want no text with \"s3cret\"", s)
		}
	}
}

func TestVersionsRoundTrip(t *testing.T) {
	for _, v := range []version{{}, {epoch: "e", nodeVersion: 7}, {leaf: "10.0.0.1:8080-0000000003", leafVersion: 9}, {"e", 7, "a|b-1", 0}} {
		if got, ok := parseVersion(v.text()); !ok || got != v {
			t.Errorf("%+v %q: parseVersion(v.text()) = %+v, want ok = true and %v", v, v.text(), got, v)
		}
	}
	for _, s := range []worker.Version{takenVersion, "e", "e/", "/", "|", "|x|n", "e/99999999999"} {
		if v, ok := parseVersion(s); ok && s != "|" {
			t.Errorf("%q: parseVersion(s) = %+v, want (ok = false or s = \"|\")", s, v)
		}
	}
}
