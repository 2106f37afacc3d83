package driver

import (
	"database/sql"
	"log/slog"
	"testing"
)

const insertT = "INSERT INTO t (a, b) VALUES (1, 2)"

// leased is a Config over noop whose table takes snowflakes with a worker id
// from spec.
func leased(spec string) *Config {
	cfg := NewConfig()
	cfg.MySQL.DBName = "shop"
	cfg.Auto = false
	cfg.Tables = []Rule{{Table: "t", Kind: Snowflake}}
	cfg.Worker = spec
	cfg.NewRegistry = true
	cfg.Logger = slog.New(slog.DiscardHandler)
	return cfg
}

func wrapNoop(t *testing.T, cfg *Config) *Connector {
	t.Helper()
	c, err := Wrap(noop{}, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// A Connector closed by its pool and by hand lets go once of what others share.
func TestConnectorClosedTwice(t *testing.T) {
	one, two := wrapNoop(t, leased("static(901)")), wrapNoop(t, leased("static(901)"))
	db := sql.OpenDB(two)
	defer db.Close()
	if _, err := db.Exec(insertT); err != nil {
		t.Fatal(err)
	}
	sql.OpenDB(one).Close()
	one.Close()
	if _, err := db.Exec(insertT); err != nil {
		t.Errorf("the other pool: %v", err)
	}
}
