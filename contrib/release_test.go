//go:build packages

package contrib

import (
	"crypto/sha256"
	"debug/elf"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// TestReleaseIsStaticAndComplete: an archive contains a static program of the version, completions and licences. Its sum is right, and its bill of
// materials names the linked modules.
func TestReleaseIsStaticAndComplete(t *testing.T) {
	dir := release(t)
	name := fmt.Sprintf("leafsql_%s_%s_%s", version, runtime.GOOS, runtime.GOARCH)
	archive := name + ".tar.gz"
	inside := strings.Fields(run(t, "", "tar", "-tzf", filepath.Join(dir, archive)))
	var want []string
	for _, file := range []string{"leafsql", "LICENSES-OF-DEPENDENCIES", "completions/leafsql.bash", "completions/_leafsql", "completions/leafsql.fish", "LICENSE", "README.md", "CHANGELOG.md"} {
		want = append(want, name+"/"+file)
	}
	if !slices.Equal(inside, want) {
		t.Errorf("files in the archive = %v, want %v", inside, want)
	}
	if out := run(t, "", filepath.Join(dir, "leafsql"), "version"); !strings.HasPrefix(out, "leafsql "+version+", go") {
		t.Errorf("leafsql version = %q, want prefix %q", out, "leafsql "+version+", go")
	}
	if program, err := elf.Open(filepath.Join(dir, "leafsql")); err != nil || program.Section(".interp") != nil {
		t.Errorf("program is not static (error %v), want no section .interp", err)
	}
	for _, file := range []string{archive, name + ".cdx.json"} {
		if line := fmt.Sprintf("%x  %s\n", sha256.Sum256(read(t, filepath.Join(dir, file))), file); !strings.Contains(string(read(t, filepath.Join(dir, "SHA256SUMS"))), line) {
			t.Errorf("SHA256SUMS has no line %q, want it", line)
		}
	}
	var bill struct {
		BomFormat string
		Metadata  struct {
			Component struct{ Version string }
			Timestamp string
		}
		Components []struct{ Name, Version string }
	}
	if err := json.Unmarshal(read(t, filepath.Join(dir, name+".cdx.json")), &bill); err != nil {
		t.Fatal(err)
	}
	named := func(name string) bool {
		return slices.ContainsFunc(bill.Components, func(c struct{ Name, Version string }) bool { return c.Name == name && c.Version != "" })
	}
	if bill.BomFormat != "CycloneDX" || bill.Metadata.Component.Version != version || bill.Metadata.Timestamp != "" || !named("std") || !named("github.com/go-sql-driver/mysql") || !named("github.com/leafsql/leafsql") {
		t.Errorf("bill of materials = %+v, want CycloneDX, version %s, no timestamp, and the components std, go-sql-driver and leafsql", bill, version)
	}
	for _, c := range bill.Components {
		if strings.HasPrefix(c.Name, "github.com/leafsql/leafsql") && c.Version != version || strings.HasPrefix(c.Name, ".") {
			t.Errorf("component = %+v, want version %s for modules of leafsql, and no relative names", c, version)
		}
	}
	licences := string(read(t, filepath.Join(dir, "LICENSES-OF-DEPENDENCIES")))
	for _, c := range bill.Components {
		if c.Name != "std" && !strings.HasPrefix(c.Name, "github.com/leafsql/leafsql") && !strings.Contains(licences, "==== "+c.Name+" "+c.Version+": ") {
			t.Errorf("LICENSES-OF-DEPENDENCIES has no section for %s %s, want one", c.Name, c.Version)
		}
	}
}

// TestReleaseIsReproducible: another clone in another folder gives the same bytes. TestImage checks the same for a compiler without
// the cache of the first build.
func TestReleaseIsReproducible(t *testing.T) {
	first, tree := release(t), t.TempDir()
	run(t, "", "sh", "-c", `cd .. && git ls-files -z --cached --others --exclude-standard | xargs -0 cp --parents -t "$0"`, tree)
	run(t, "", "make", "-s", "-C", tree, "release", "VERSION="+version, "PLATFORMS="+runtime.GOOS+"/"+runtime.GOARCH)
	again := filepath.Join(tree, "dist")
	entries, err := os.ReadDir(again)
	if err != nil || len(entries) != 4 {
		t.Fatalf("ReadDir(%s) = %v, %v, want four files and no error", again, entries, err)
	}
	for _, e := range entries {
		if string(read(t, filepath.Join(again, e.Name()))) != string(read(t, filepath.Join(first, e.Name()))) {
			t.Errorf("%s differs between two builds, want the same bytes", e.Name())
		}
	}
}
