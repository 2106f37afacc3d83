//go:build unix

package mysqltest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestMissingServerNamesThePackage(t *testing.T) {
	t.Setenv(EnvServer, "")
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("HOME", t.TempDir())
	for kind, want := range map[Kind]string{"": "mariadb-server-core", MariaDB: "mariadb-server-core", MySQL: "mysql-server-core"} {
		_, err := findBinary(kind, []string{t.TempDir()})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("kind %q: error %v, want one that names the package %s", kind, err, want)
		}
	}
}

func TestServerIsFoundByName(t *testing.T) {
	cache := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", cache)
	t.Setenv(EnvServer, "mariadb-11.8")
	if _, err := findBinary("", nil); err == nil || !strings.Contains(err.Error(), ".ci/server mariadb-11.8") {
		t.Errorf("error %v, want one that says how to get the server", err)
	}
	program := filepath.Join(cache, "leafsql/mariadb-11.8/usr/sbin/mariadbd")
	if err := os.MkdirAll(filepath.Dir(program), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(program, []byte("#!/bin/sh\necho mariadbd Ver 11.8.6-MariaDB\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, kind := range []Kind{"", MariaDB} {
		if b, err := findBinary(kind, nil); err != nil || b.path != program || b.kind != MariaDB {
			t.Errorf("findBinary(%q) = %+v, %v, want %s of MariaDB", kind, b, err, program)
		}
	}
	if b, err := findBinary(MySQL, nil); err == nil {
		t.Errorf("findBinary(MySQL) = %s, want an error", b.path)
	}
	if kinds := Kinds(); len(kinds) != 1 || kinds[0] != MariaDB {
		t.Errorf("Kinds() = %q, want MariaDB alone", kinds)
	}
}
