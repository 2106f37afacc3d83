//go:build unix

package mysqltest

import (
	"strings"
	"testing"
)

func TestMissingServerNamesThePackage(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("HOME", t.TempDir())
	for kind, want := range map[Kind]string{"": "mariadb-server-core", MariaDB: "mariadb-server-core", MySQL: "mysql-server-core"} {
		_, err := findBinary(kind, []string{t.TempDir()})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("kind %q: error %v, want one that names the package %s", kind, err, want)
		}
	}
}
