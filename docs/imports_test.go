package docs

import (
	"maps"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/leafsql/leafsql/"

// testOnly matches packages that are only for tests, and cmd, which no package imports:
// they may import everything.
var testOnly = regexp.MustCompile(`^(testutil|cmd|docs)(/|$)|/(servertest|inserttest|segmenttest|workertest|leasetest|fakenacos|redistest|etcdtest|zktest|proxytest|javaleaf)$`)

// serverStarters matches packages that start servers for tests.
var serverStarters = regexp.MustCompile(`^testutil/|/(redistest|etcdtest|zktest)$`)

// clients are parts of the import paths of clients for servers other than MySQL, and of OpenTelemetry.
var clients = []string{"nacos", "redis", "go-zookeeper", "etcd", "grpc", "prometheus", "opentelemetry"}

// An importRow is the row of a package in contributing/imports.md's table of imports.
type importRow struct{ imports, forbidden []string }

// importRows returns the rows of the table.
func importRows(t *testing.T) map[string]importRow {
	t.Helper()
	all := make(map[string]importRow)
	for _, cells := range readTable(t, "contributing/imports.md", "## Imports") {
		for pkg := range strings.SplitSeq(cells[0], ", ") {
			all[pkg] = importRow{splitList(cells[1]), splitList(cells[2])}
		}
	}
	return all
}

func splitList(cell string) []string {
	if cell == "–" {
		return nil
	}
	return strings.Split(cell, ", ")
}

// TestImportsAreAllowed compares the code with contributing/imports.md's table: each package imports only
// those of our packages that the table allows, and importing driver alone needs few
// others.
func TestImportsAreAllowed(t *testing.T) {
	all := importRows(t)
	for _, line := range goList(t, "-f", `{{.ImportPath}}: {{join .Imports " "}}: {{join .Deps " "}}`, module+"...") {
		cells := strings.Split(line, ": ")
		pkg := strings.TrimPrefix(cells[0], module)
		if testOnly.MatchString(pkg) {
			continue
		}
		r, ok := all[pkg]
		if !ok {
			t.Errorf("table of contributing/imports.md has no row for %s, want one", pkg)
			continue
		}
		delete(all, pkg)
		var ours []string
		for _, path := range strings.Fields(cells[1]) {
			if own, ok := strings.CutPrefix(path, module); ok {
				ours = append(ours, own)
			}
		}
		if !slices.Equal(ours, r.imports) {
			t.Errorf("imports of %s = %s, want %s as in the table of contributing/imports.md", pkg, strings.Join(ours, ", "), strings.Join(r.imports, ", "))
		}
		for _, dep := range strings.Fields(cells[2]) {
			if !strings.HasPrefix(dep, module) && slices.ContainsFunc(r.forbidden, func(what string) bool { return bringsAlong(dep, what) }) {
				t.Errorf("%s depends on %s, want a program without it", pkg, dep)
			}
		}
	}
	if len(all) > 0 {
		t.Errorf("table of contributing/imports.md has rows for %v, want only existing packages", slices.Sorted(maps.Keys(all)))
	}
}

// bringsAlong reports whether a package belongs to a word in the table.
func bringsAlong(dep, what string) bool {
	switch what {
	case "others' code":
		first, _, _ := strings.Cut(dep, "/")
		return strings.Contains(first, ".")
	case "clients":
		return slices.ContainsFunc(clients, func(part string) bool { return strings.Contains(dep, part) })
	}
	return strings.Contains(dep, what)
}

// TestTestutilIsForTestsOnly: packages that start servers are not part of the
// product.
func TestTestutilIsForTestsOnly(t *testing.T) {
	for _, line := range goList(t, "-f", `{{.ImportPath}} {{join .Imports " "}}`, module+"...") {
		pkg, imports, _ := strings.Cut(line, " ")
		pkg = strings.TrimPrefix(pkg, module)
		if serverStarters.MatchString(pkg) {
			continue
		}
		for _, i := range strings.Fields(imports) {
			if strings.HasPrefix(i, module+"testutil/") {
				t.Errorf("%s imports %s outside its tests, want it only in tests", pkg, i)
			}
		}
	}
}

func goList(t *testing.T, args ...string) []string {
	t.Helper()
	var stderr strings.Builder // also has the names of downloads
	cmd := exec.Command("go", append([]string{"list"}, args...)...)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, &stderr)
	}
	return strings.Split(strings.TrimSpace(string(out)), "\n")
}
