package driver

import (
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
)

const base = "app:s3cret@tcp(127.0.0.1:3306)/shop"

func TestParseDSN(t *testing.T) {
	cfg, err := ParseDSN(base + "?parseTime=true&time_zone=%27%2B00:00%27" +
		"&leafTables=orders,order_*::snowflake&leafStore=root:pw@tcp(db:3306)%2Fleaf&leafAllocTable=ops.leaf_alloc&leafCreate=true" +
		"&leafWorker=nacos(h1:8848,h2:8848)&leafNacosGroup=G&leafNacosPassword=p%26w&leafSnowflake=41-10-12@1288834974657" +
		"&leafState=%2Fvar%2Flib%2Fleaf&leafLease=90s&leafLastInsertID=result&leafAutoIncrement=refuse&leafZero=keep&leafNewRegistry=true&leafAnyClock=true")
	if err != nil {
		t.Fatal(err)
	}
	if !cfg.MySQL.ParseTime || len(cfg.MySQL.Params) != 1 || cfg.MySQL.Params["time_zone"] != "'+00:00'" {
		t.Errorf("MySQL = %+v, want ParseTime and only the parameter time_zone", cfg.MySQL)
	}
	if len(cfg.Tables) != 2 || cfg.Auto() || cfg.Tables[1].Kind != Snowflake ||
		cfg.Store != "root:pw@tcp(db:3306)/leaf" || cfg.AllocTable != "ops.leaf_alloc" || !cfg.Create ||
		cfg.Worker != "nacos(h1:8848,h2:8848)" || cfg.WorkerOptions["Group"] != "G" || cfg.WorkerOptions["Password"] != "p&w" ||
		cfg.Snowflake.String() != "41-10-12@1288834974657" || cfg.State != "/var/lib/leaf" || cfg.Lease != 90*time.Second ||
		!cfg.ResultOnly || !cfg.RefuseAutoIncrement || cfg.Zero != "keep" || !cfg.NewRegistry || !cfg.AnyClock {
		t.Errorf("ParseDSN() = %#v, want the values of the DSN", *cfg)
	}
	again, err := ParseDSN(cfg.FormatDSN())
	if err != nil {
		t.Fatal(err)
	}
	if a, b := cfg.FormatDSN(), again.FormatDSN(); a != b {
		t.Errorf("FormatDSN() of a parsed DSN changed:\n got %s\nwant %s", b, a)
	}
}

func TestPlainDSNHasDefaults(t *testing.T) {
	cfg, err := ParseDSN(base)
	if err != nil {
		t.Fatal(err)
	}
	if !cfg.Auto() || cfg.AllocTable != "leaf_alloc" || cfg.Lease != time.Minute || cfg.FormatDSN() != base {
		t.Errorf("ParseDSN() = %+v with FormatDSN() = %s, want the defaults and %s", *cfg, cfg.FormatDSN(), base)
	}
	if cfg, err = ParseDSN(base + "?leafTables=none"); err != nil || !cfg.None || cfg.Auto() || cfg.Tables != nil {
		t.Errorf("ParseDSN(leafTables=none) = %+v, %v; want None and no tables", cfg, err)
	}
}

func TestParseDSNRefusesBadOptions(t *testing.T) {
	for dsn, want := range map[string]string{
		base + "?leafTabels=a":                             "leafTabels: no such parameter; known are leafConfig, leafTables",
		base + "?leafNacosGroup=G":                         "leafNacosGroup: no such parameter",
		base + "?leafTables=a&leafTables=b":                "leafTables: it is set twice; keep one of them",
		base + "?leafWorker=static(7)&leafNacosGroup=G":    "leafNacosGroup: no such parameter",
		base + "?leafTables=a:b:c":                         `unknown generator "c"`,
		base + "?leafTables=a:":                            `leafTables: rule "a:": it ends with a colon; write [db.]table[:column[:generator]]`,
		base + "?leafTables=a:b:":                          `leafTables: rule "a:b:": it ends with a colon`,
		base + "?leafTables=t&leafZero":                    "leafZero: it has no value; write it as name=value",
		base + "?leafTables&leafCreate=true":               "leafTables: it has no value",
		base + "?leafZero":                                 "leafZero: it has no value",
		base + "?leafCreate=maybe":                         "leafCreate: the value \"maybe\" is not allowed; write false (the default) or true",
		base + "?leafZero=drop":                            `leafZero: the value "drop" is not allowed; write fill or keep`,
		base + "?leafLastInsertID=x":                       "write session (the default) or result",
		base + "?leafAutoIncrement=x":                      "write allow (the default) or refuse",
		base + "?leafLease=60":                             "leafLease: it is not a duration",
		base + "?leafLease=1ms":                            "leafLease: it is not a duration from 6 seconds to an hour",
		base + "?leafWorker=static":                        "leafWorker: it is not of the form name(address)",
		base + "?leafAllocTable=a.b.":                      "leafAllocTable: it is not a table name",
		base + "?leafConfig=nobody":                        `no Config is registered as "nobody"`,
		base + "?leafStore=nonsense":                       "leafStore",
		base + "?leafState=/var/lib":                       "leafState: it was read as part of",
		base + "?leafStore=root:other@tcp(h)/db":           "leafStore: it was read as part of",
		"app:s3cret@tcp(127.0.0.1:3306)/shop&leafTables=a": "leafTables: it was read as part of",
		"app:s3cret@tcp(h)leafTables=a":                    "leafTables: it was read as part of",
	} {
		_, err := ParseDSN(dsn)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s:\n got %v\nwant %s", dsn, err, want)
			continue
		}
		var ce *ConfigError
		if !errors.As(err, &ce) {
			t.Errorf("%s: error of type %T, want *ConfigError", dsn, err)
		}
		if s := err.Error(); strings.Contains(s, "s3cret") || strings.Contains(s, "other") {
			t.Errorf("%s: error %q shows a password, want none", dsn, s)
		}
	}
}

// TestConfigEqualsDSNWithoutParameters: a Config with only its MySQL field set means the same as a DSN without parameters.
func TestConfigEqualsDSNWithoutParameters(t *testing.T) {
	for _, tt := range []struct {
		cfg  Config
		idle bool
		dsn  string
	}{{Config{}, false, ""}, {Config{None: true}, true, "?leafTables=none"}, {Config{Tables: []Rule{{Table: "orders"}}}, false, "?leafTables=orders"}} {
		cfg := tt.cfg
		cfg.MySQL = mysql.NewConfig()
		cfg.MySQL.Net, cfg.MySQL.Addr, cfg.MySQL.DBName = "tcp", "127.0.0.1:3306", "shop"
		if got, want := cfg.FormatDSN(), "tcp(127.0.0.1:3306)/shop"+tt.dsn; got != want {
			t.Errorf("FormatDSN() = %s, want %s", got, want)
		}
		c, err := NewConnector(&cfg)
		if err != nil {
			t.Fatal(err)
		}
		if got := c.tables.IsEmpty(); got != tt.idle || cfg.Auto() != (tt.dsn == "") {
			t.Errorf("%s: fills nothing %v, want %v; Auto() = %v", &cfg, got, tt.idle, cfg.Auto())
		}
		c.Close()
	}
	if _, err := NewConnector(&Config{MySQL: mysql.NewConfig(), None: true, Tables: []Rule{{Table: "orders"}}}); err == nil {
		t.Error("NewConnector() of None with rules: no error, want one")
	}
}

func TestNewConnectorRefusesBadConfigs(t *testing.T) {
	for dsn, want := range map[string]string{
		base + "?leafStore=u@tcp(h)%2Fd?leafZero":                            "leafsql: leafStore: leafZero: it has no value",
		base + "?leafSnowflake=63-0-0&leafWorker=static(7)":                  "leafsql: leafSnowflake: ",
		base + "?leafTables=t::snowflake&leafWorker=mysql(h)":                "leafsql: leafWorker: mysql() takes no address",
		base + "?leafTables=t::snowflake&leafWorker=static(7)&leafStaticA=1": "leafsql: leafStaticA: no such parameter",
		base + "?leafTables=t::snowflake&leafWorker=nobody(7)":               "leafsql: leafWorker: ",
	} {
		_, err := sqlDriver{}.OpenConnector(dsn)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s:\n got %v\nwant %s", dsn, err, want)
		}
	}
}

func TestConfigHidesSecrets(t *testing.T) {
	cfg, err := ParseDSN(base + "?leafStore=root:s3cret@tcp(h)%2Fdb&leafWorker=nacos(h)&leafNacosPassword=s3cret")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []string{cfg.String(), fmt.Sprintf("%v %+v %#v", cfg, cfg, cfg), slog.AnyValue(cfg).String()} {
		if strings.Contains(s, "s3cret") {
			t.Errorf("text %s shows a secret, want none", s)
		}
	}
}

func TestRegisterConfig(t *testing.T) {
	logger := slog.New(slog.DiscardHandler)
	reg := NewConfig()
	reg.Logger, reg.Zero, reg.None = logger, "keep", true
	RegisterConfig("test", reg)
	cfg, err := ParseDSN(base + "?leafTables=a&leafConfig=test")
	if err != nil {
		t.Fatal(err)
	}
	if cfg.Logger != logger || cfg.Zero != "keep" || len(cfg.Tables) != 1 || cfg.MySQL.DBName != "shop" {
		t.Errorf("ParseDSN() = %+v, want the logger and Zero of the registered Config, and the rules and database of the DSN", *cfg)
	}
	if want := "leafConfig=test"; !strings.Contains(cfg.FormatDSN(), want) {
		t.Errorf("%s lacks %s", cfg.FormatDSN(), want)
	}
}

// TestDSNOverridesRegisteredWorkerOptions: an option of the worker source in a DSN replaces only this option of the registered
// Config, and leafWorker replaces all of them.
func TestDSNOverridesRegisteredWorkerOptions(t *testing.T) {
	RegisterConfig("worker", &Config{Worker: "nacos(h:8848)", WorkerOptions: map[string]string{"Group": "a", "Namespace": "n"}})
	for params, want := range map[string]map[string]string{
		"":                                      {"Group": "a", "Namespace": "n"},
		"&leafNacosGroup=b":                     {"Group": "b", "Namespace": "n"},
		"&leafWorker=static(7)":                 nil,
		"&leafWorker=nacos(h)&leafNacosGroup=b": {"Group": "b", "Namespace": "n"},
	} {
		cfg, err := ParseDSN(base + "?leafConfig=worker" + params)
		if err != nil || !maps.Equal(cfg.WorkerOptions, want) {
			t.Errorf("ParseDSN(…%s) = %v, error %v; want the worker options %v", params, cfg, err, want)
			continue
		}
		again, err := ParseDSN(cfg.FormatDSN())
		if err != nil || again.Worker != cfg.Worker || !maps.Equal(again.WorkerOptions, want) {
			t.Errorf("ParseDSN(%s) = %v, error %v; want the source %s with the options %v", cfg.FormatDSN(), again, err, cfg.Worker, want)
		}
	}
}

func FuzzParseDSN(f *testing.F) {
	for _, s := range []string{base, base + "?leafTables=a,b:c:snowflake&leafWorker=static(7)", "/", "u@/d?leafZero=keep", base + "?leafState=/x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, dsn string) {
		cfg, err := ParseDSN(dsn)
		if err != nil {
			return
		}
		for k := range cfg.MySQL.Params {
			if strings.HasPrefix(k, "leaf") {
				t.Errorf("parameter %q is in the DSN of the inner driver, want no parameter of leafsql", k)
			}
		}
		again, err := ParseDSN(cfg.FormatDSN())
		if err != nil {
			return // go-sql-driver cannot parse some odd addresses that it formats
		}
		if a, b := writeTables(cfg), writeTables(again); a != b {
			t.Errorf("leafTables = %q after FormatDSN and ParseDSN, want %q", b, a)
		}
	})
}

// TestErrorNamesPackageOfMissingSource: the error names the package to import and the module to get.
func TestErrorNamesPackageOfMissingSource(t *testing.T) {
	db, err := sql.Open(Name, base+"?leafTables=events:id:snowflake&leafWorker=etcd(h1:2379)")
	if err == nil {
		err = db.Ping()
		db.Close()
	}
	var mistake *ConfigError
	const want = `go get github.com/leafsql/leafsql/idgen/worker/etcd, and import it for its side effect: import _ "github.com/leafsql/leafsql/idgen/worker/etcd"`
	if !errors.As(err, &mistake) || mistake.Param != "leafWorker" || !strings.Contains(err.Error(), want) {
		t.Errorf("sql.Open() = %v, want a ConfigError with %s", err, want)
	}
}
