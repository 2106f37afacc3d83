package servertest

import (
	"encoding/hex"
	"fmt"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/leafsql/leafsql/driver"
	"github.com/leafsql/leafsql/testutil/mysqltest"
)

// TestUUID7FillsKeysOfEveryType fills keys of every type that can store UUIDs.
func TestUUID7FillsKeysOfEveryType(t *testing.T) {
	for _, server := range mysqltest.Targets(t) {
		for _, typ := range []string{"BINARY(16)", "CHAR(36)", "VARCHAR(40)"} {
			t.Run(server.Name+"/"+typ, func(t *testing.T) { fillUUIDs(t, server, typ) })
		}
	}
}

func TestUUID7FillsKeysOfTypeUUID(t *testing.T) {
	server := mysqltest.TargetOf(t, mysqltest.MariaDB)
	server.SkipUnless(t, "the type UUID", 100700, 0)
	fillUUIDs(t, server, "UUID")
}

// fillUUIDs writes rows in every way. Each key must be the one in WithGeneratedIDs, in row order.
func fillUUIDs(t *testing.T, server mysqltest.Target, typ string) {
	plain, leaf := openOn(t, server.Database(t), "leafTables=t:id:uuid7&multiStatements=true",
		"CREATE TABLE t (id "+typ+" NOT NULL PRIMARY KEY, a INT UNIQUE)", "CREATE TABLE s (a INT)", "INSERT INTO s VALUES (20), (21), (22)")
	var ids []driver.GeneratedIDs
	ctx := driver.WithGeneratedIDs(t.Context(), &ids)
	own := uuid.MustParse("018f2f3a-1111-7000-8000-000000000001")
	var ownArg any = own.String()
	if typ == "BINARY(16)" {
		ownArg = own[:]
	}
	for _, s := range []step{
		ex("INSERT INTO t (a) VALUES (1), (2), (3)"),
		ex("INSERT INTO t (a) VALUES (?), (?)", 4, 5),
		ex("INSERT INTO t (id, a) VALUES (?, 6), (?, 7), (?, 8)", nil, ownArg, ""),
		ex("INSERT INTO t SET a = 9"),
		ex("INSERT INTO t VALUES (NULL, 10); INSERT INTO t VALUES (DEFAULT, 11)"),
		ex("INSERT INTO t (a) VALUES (1) ON DUPLICATE KEY UPDATE a = 12"),
		ex("INSERT INTO t (a) SELECT a FROM s ORDER BY a"),
		ex("INSERT INTO t (a, id) SELECT 30, NULL UNION SELECT 31, NULL"),
		ex("INSERT INTO t (a) SELECT 40 FROM DUAL WHERE NOT EXISTS (SELECT 1 FROM t WHERE a = 40)"),
	} {
		res, err := leaf.ExecContext(ctx, s.sql, s.args...)
		if refusedForItsVersion(t, s.sql, err) {
			continue
		}
		if err != nil {
			t.Fatalf("%s: %v", s.sql, err)
		}
		if id, err := res.LastInsertId(); id != 0 || err != nil {
			t.Errorf("%s: LastInsertId() = %d, %v; want 0", s.sql, id, err)
		}
	}
	var want []string
	for _, g := range ids {
		if len(g.UUIDs) != g.N || g.First != 0 {
			t.Errorf("GeneratedIDs = %+v, want as many UUIDs as N, and First 0", g)
		}
		for _, id := range g.UUIDs {
			want = append(want, strings.ReplaceAll(id.String(), "-", ""))
		}
	}
	var got []string
	rows, err := plain.Query("SELECT LOWER(IF(LENGTH(id) = 16, HEX(id), REPLACE(CAST(id AS CHAR), '-', ''))), a FROM t WHERE a <> 7 ORDER BY a")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var id string
		var a int
		if err := rows.Scan(&id, &a); err != nil {
			t.Fatal(err)
		}
		if b, err := hex.DecodeString(id); err != nil || len(b) != 16 || b[6]>>4 != 7 {
			t.Errorf("row %d: key %s, want a UUID of version 7", a, id)
		}
		got = append(got, id)
	}
	// The upsert updated row 1 to row 12: its UUID was not stored.
	if len(got) != len(want)-1 {
		t.Fatalf("%d rows, want the %d generated ones", len(got), len(want))
	}
	stored := fmt.Sprint(got)
	missing := 0
	for _, id := range want {
		if !strings.Contains(stored, id) {
			missing++
		}
	}
	if missing != 1 {
		t.Errorf("%d generated UUIDs are not stored, want 1", missing)
	}
}

func TestUUID7RefusesColumnsThatAreTooShort(t *testing.T) {
	for typ, want := range map[string]string{
		"BIGINT": "cannot hold UUIDs", "CHAR(30)": "cannot hold UUIDs", "BINARY(15)": "cannot hold UUIDs", "VARBINARY(36)": "does not determine",
	} {
		_, leaf := open(t, "leafTables=t:id:uuid7", "CREATE TABLE t (id "+typ+" PRIMARY KEY, a INT)")
		refused(t, leaf, want, "INSERT INTO t (a) VALUES (1)")
	}
	for form, want := range map[string]int{"text": 36, "binary": 16} {
		plain, leaf := open(t, "leafTables=t:id:uuid7&leafUUID="+form, "CREATE TABLE t (id VARBINARY(36) PRIMARY KEY, a INT)")
		mustExec(t, leaf, "INSERT INTO t (a) VALUES (1)")
		var n int
		if err := plain.QueryRow("SELECT LENGTH(id) FROM t").Scan(&n); err != nil || n != want {
			t.Errorf("leafUUID=%s: key of %d bytes, error %v; want %d bytes", form, n, err, want)
		}
	}
	if _, err := driver.ParseDSN("u@/d?leafUUID=hex"); err == nil || !strings.Contains(err.Error(), "write text or binary") {
		t.Errorf("ParseDSN(): error %v, want one with \"write text or binary\"", err)
	}
}
