package servertest

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/leafsql/leafsql/driver"
	"github.com/leafsql/leafsql/testutil/mysqltest"
)

// TestZeroUnderPatternIsWarnedOfOnce: when a key is generated for a written 0, one warning is logged for each table
// that only a pattern names, however the 0 was written.
func TestZeroUnderPatternIsWarnedOfOnce(t *testing.T) {
	const said = "a written 0"
	for _, target := range mysqltest.Targets(t) {
		t.Run(target.Name, func(t *testing.T) {
			for _, tt := range []struct {
				name, params string
				texts        []string // each writes two rows with the key 0
				args         []any
				quiet        bool
			}{
				{name: "text", texts: []string{"INSERT INTO chunk_ref VALUES (0, 1), (0, 2)"}},
				{name: "string", texts: []string{"INSERT INTO chunk_ref (a, chunkid) VALUES (1, '0'), (2, '0')"}},
				{name: "arguments", texts: []string{"INSERT INTO chunk_ref (chunkid, a) VALUES (?, 1), (?, 2)"}, args: []any{0, uint64(0)}},
				{name: "select", texts: []string{"INSERT INTO chunk_ref SELECT 0, 1 UNION ALL SELECT 0, 2"}},
				{name: "pattern", params: "leafTables=chunk_*&leafCreate=true", texts: []string{"INSERT INTO chunk_ref VALUES (0, 1), (0, 2)"}},
				{name: "no 0", texts: []string{
					"INSERT INTO chunk_ref (chunkid, a) VALUES (NULL, 1), (DEFAULT, 2)", "INSERT INTO chunk_ref (a) SELECT 1 UNION ALL SELECT 2",
					"INSERT INTO chunk_ref SELECT NULL, 1 UNION ALL SELECT 5, 2", "INSERT INTO chunk_ref (chunkid, a) VALUES (70, 1), (71, 2)",
				}, quiet: true},
				{name: "named", params: "leafTables=chunk_ref&leafCreate=true", texts: []string{"INSERT INTO chunk_ref VALUES (0, 1), (0, 2)"}, quiet: true},
				{name: "AUTO_INCREMENT", texts: []string{"INSERT INTO counted VALUES (0, 1), (0, 2)"}, quiet: true},
				{name: "kept", params: "leafTables=*&leafCreate=true&leafZero=keep", texts: []string{"INSERT IGNORE INTO chunk_ref VALUES (0, 1), (0, 2)"}, quiet: true},
			} {
				t.Run(tt.name, func(t *testing.T) {
					var log bytes.Buffer
					dsn := target.Database(t)
					if tt.params == "" {
						tt.params = "leafTables=*&leafCreate=true"
					}
					cfg, err := driver.ParseDSN(dsn + "?" + tt.params)
					if err != nil {
						t.Fatal(err)
					}
					cfg.Logger = slog.New(slog.NewTextHandler(&log, nil))
					driver.RegisterConfig("zeros", cfg)
					_, leaf := openOn(t, dsn, "leafConfig=zeros", "CREATE TABLE chunk_ref (chunkid BIGINT PRIMARY KEY, a INT)", "CREATE TABLE counted (id BIGINT PRIMARY KEY AUTO_INCREMENT, a INT)")
					leaf.SetMaxOpenConns(1)
					for range 2 {
						for _, text := range append([]string{"DELETE FROM chunk_ref"}, tt.texts...) {
							var args []any
							if strings.HasPrefix(text, "INSERT") {
								args = tt.args
							}
							if _, err := leaf.Exec(text, args...); err != nil {
								t.Fatalf("%s: %v", text, err)
							}
						}
					}
					want := 1
					if tt.quiet {
						want = 0
					}
					if n := strings.Count(log.String(), said); n != want {
						t.Errorf("%d warnings, want %d: %s", n, want, log.String())
					}
					if way := log.String(); want == 1 && (!strings.Contains(way, "level=WARN") || !strings.Contains(way, "!"+databaseOf(t, dsn)+".chunk_ref") || !strings.Contains(way, "leafZero=keep")) {
						t.Errorf("warning = %s, want the table's rule and leafZero=keep as hints", way)
					}
				})
			}
		})
	}
}
