package driver_test

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/leafsql/leafsql/"

// imports is ARCHITECTURE.md's table of who may import whom: for each package what of
// ours it may depend on, however indirectly, and which others' code it must
// never bring along.
var imports = []struct {
	pkg   string
	ours  []string
	never []string // parts of import paths
}{
	{"driver/internal/lex", nil, notStd},
	{"driver/internal/insert", []string{"driver/internal/lex", "internal/quote"}, append(notStd, "database/sql")},
	{"driver/internal/catalog", []string{"internal/quote"}, append(clients, "sqlx")},
	{"driver/internal/ownpool", []string{"internal/mysqlerr"}, append(clients, "sqlx")},
	{"driver/internal/ids", []string{"driver/internal/ownpool", "idgen", "idgen/segment", "idgen/snowflake", "idgen/worker", "idgen/worker/mysql", "internal/mysqlerr", "internal/part", "internal/quote", "internal/schema", "internal/spec"}, clients},
	{"driver/internal/plancache", nil, append(notStd, "database/sql")},
	{"idgen", nil, append(notStd, "database/sql")},
	{"internal/mysqlerr", nil, notStd},
	{"internal/part", nil, notStd},
	{"internal/quote", nil, notStd},
	{"internal/schema", nil, notStd},
	{"internal/spec", nil, notStd},
	{"idgen/worker", []string{"internal/part", "internal/spec"}, notStd},
	{"idgen/worker/mysql", []string{"idgen/worker", "internal/mysqlerr", "internal/part", "internal/quote", "internal/schema", "internal/spec"}, append(clients, "sqlx")},
	{"internal/setting", []string{"idgen/worker", "internal/part", "internal/spec"}, notStd},
	{"idgen/worker/etcd", []string{"idgen/worker", "internal/part", "internal/spec", "internal/setting"}, []string{"go-sql-driver", "sqlx", "nacos", "redis"}},
	{"idgen/uuid7", nil, notStd},
	{"idgen/segment", []string{"idgen", "internal/mysqlerr", "internal/part", "internal/quote", "internal/schema"}, append(clients, "go-sql-driver")},
	{"idgen/snowflake", []string{"idgen", "internal/part", "internal/spec", "idgen/worker"}, append(clients, "go-sql-driver")},
	{"idgen/worker/redis", []string{"idgen/worker", "internal/part", "internal/spec", "internal/setting"}, []string{"go-sql-driver", "sqlx", "nacos", "zookeeper", "etcd", "grpc"}},
	{"idgen/worker/zookeeper", []string{"idgen/worker", "internal/part", "internal/spec", "internal/setting"}, []string{"go-sql-driver", "sqlx", "nacos", "redis", "etcd", "grpc"}},
	{"nacos", []string{"idgen/worker", "internal/part", "internal/spec", "internal/setting", "nacos/..."}, []string{"go-sql-driver", "sqlx"}},
	{"driver", []string{"driver/internal/lex", "driver/internal/insert", "driver/internal/plancache", "driver/internal/catalog", "driver/internal/ownpool", "driver/internal/ids", "idgen", "idgen/uuid7", "idgen/segment", "idgen/snowflake", "idgen/worker", "idgen/worker/mysql", "internal/mysqlerr", "internal/part", "internal/quote", "internal/schema", "internal/spec"}, clients},
	{"statuspage", []string{"driver", "driver/internal/...", "idgen", "idgen/...", "internal/mysqlerr", "internal/part", "internal/quote", "internal/schema", "internal/spec"}, clients},
	{"metrics", []string{"driver", "driver/internal/...", "idgen", "idgen/...", "internal/mysqlerr", "internal/part", "internal/quote", "internal/schema", "internal/spec"}, []string{"nacos", "redis", "zookeeper", "go-zk", "etcd", "grpc"}},
}

var (
	clients = []string{"nacos", "redis", "zookeeper", "go-zk", "etcd", "grpc", "prometheus", "testify"}
	notStd  = []string{"github.com/jmoiron", "github.com/go-sql-driver", "github.com/samber", "github.com/nacos-group", "google.golang.org"}
)

// TestImports holds the packages' real dependencies against the table:
// arrows go downwards, and importing driver alone stays light.
func TestImports(t *testing.T) {
	for _, row := range imports {
		deps := goList(t, "-deps", module+row.pkg)
		for _, dep := range deps {
			if own, ok := strings.CutPrefix(dep, module); ok && own != row.pkg && !allowed(row.ours, own) {
				t.Errorf("%s must not depend on %s", row.pkg, own)
			}
			if strings.HasPrefix(dep, module) {
				continue
			}
			for _, part := range row.never {
				if strings.Contains(dep, part) {
					t.Errorf("%s must not bring along %s", row.pkg, dep)
				}
			}
		}
	}
}

func allowed(ours []string, pkg string) bool {
	return slices.ContainsFunc(ours, func(o string) bool {
		prefix, tree := strings.CutSuffix(o, "/...")
		return pkg == o || tree && strings.HasPrefix(pkg, prefix+"/")
	})
}

// TestTestutilIsForTestsOnly: what starts servers is no part of the product.
func TestTestutilIsForTestsOnly(t *testing.T) {
	for _, line := range goList(t, "-f", `{{.ImportPath}} {{join .Imports " "}}`, module+"...") {
		pkg, imports, _ := strings.Cut(line, " ")
		pkg = strings.TrimPrefix(pkg, module)
		if strings.HasPrefix(pkg, "testutil/") {
			continue
		}
		for _, i := range strings.Fields(imports) {
			if strings.HasPrefix(i, module+"testutil/") {
				t.Errorf("%s imports %s outside its tests", pkg, i)
			}
		}
	}
}

func goList(t *testing.T, args ...string) []string {
	t.Helper()
	out, err := exec.Command("go", append([]string{"list"}, args...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, out)
	}
	return strings.Split(strings.TrimSpace(string(out)), "\n")
}
