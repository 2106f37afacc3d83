package docs

import (
	"bytes"
	"cmp"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	modules "golang.org/x/mod/module"
	"golang.org/x/mod/zip"
)

// TestGuests releases this tree to a private module proxy. Modules outside require it from there, as users do, and the
// page describes the resulting go.mod.
func TestGuests(t *testing.T) {
	r := newRelease(t)
	driver := r.guest(t, "driver")
	for _, row := range readTable(t, "faq.md", "## What does requiring leafsql raise in my go.mod?") {
		pkg := strings.Trim(row[0], "`")
		t.Run(pkg, func(t *testing.T) {
			g := r.guest(t, "driver", pkg)
			if pkg == "driver" || pkg == "idgen/worker/redis" {
				r.run(t, g.dir, "go", "build", "./...")
			}
			required := g.required
			if pkg != "driver" {
				required = slices.DeleteFunc(required, func(m string) bool { return slices.Contains(driver.required, m) })
			}
			if want := strings.Join(required, ", "); strings.ReplaceAll(row[1], "`", "") != want {
				t.Errorf("the row of %s should be\n| `%[1]s` | %s |", pkg, want)
			}
		})
	}
	t.Run("none of the clients", func(t *testing.T) {
		for m := range strings.Lines(r.run(t, driver.dir, "go", "list", "-m", "all")) {
			if !strings.HasPrefix(m, modulePath) && (bringsAlong(m, "clients") || bringsAlong(m, "zap")) {
				t.Errorf("modules of a program that requires the driver include %s, want none of the clients", m)
			}
		}
	})
	t.Run("one after the other", func(t *testing.T) {
		dir := t.TempDir()
		write(t, filepath.Join(dir, "go.mod"), "module example.com/guest\n\ngo 1.26.0\n")
		for _, module := range []string{"metrics", "nacos", "idgen/worker/etcd", "otelmetrics"} {
			write(t, filepath.Join(dir, path.Base(module)+".go"), fmt.Sprintf("package guest\nimport _ %q\n", modulePath+"/"+module))
			r.run(t, dir, "go", "mod", "edit", "-require", modulePath+"/"+module+"@"+r.version)
			r.run(t, dir, "go", "mod", "tidy")
		}
	})
	t.Run("install", func(t *testing.T) {
		bin := t.TempDir()
		r := &release{version: r.version, env: append(slices.Clip(r.env), "GOBIN="+bin)}
		r.run(t, bin, "go", "install", modulePath+"/cmd/leafsql@"+r.version)
		if said := r.run(t, bin, filepath.Join(bin, "leafsql"), "version"); !strings.Contains(said, r.version) {
			t.Errorf("leafsql version = %q, want the version %s", said, r.version)
		}
	})
}

const modulePath = "github.com/leafsql/leafsql"

// A release is a version of this tree that only this test sees.
type release struct {
	version string
	tags    []string
	env     []string
}

func newRelease(t *testing.T) *release {
	r := &release{env: append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1",
		"GIT_AUTHOR_NAME=test", "GIT_AUTHOR_EMAIL=test@localhost", "GIT_COMMITTER_NAME=test", "GIT_COMMITTER_EMAIL=test@localhost",
		"GOFLAGS="+strings.TrimSpace(os.Getenv("GOFLAGS")+" -buildvcs=false -modcacherw"), "GOWORK=off",
		"GONOSUMDB="+strings.Trim(os.Getenv("GONOSUMDB")+","+modulePath+","+modulePath+"/*", ","))}
	tree := copyTree(t)
	r.run(t, tree, "git", "init", "-q")
	if repository := r.run(t, tree, "git", "rev-parse", "--absolute-git-dir"); repository != filepath.Join(tree, ".git") {
		t.Fatalf("repository of git = %s, want %s", repository, filepath.Join(tree, ".git"))
	}
	r.run(t, tree, "git", "add", ".")
	r.run(t, tree, "git", "commit", "-q", "-m", "tree")
	// The go command keeps its downloads: one version is always the same tree.
	r.version = "v0.0.1-test.t" + r.run(t, tree, "git", "rev-parse", "HEAD^{tree}")[:16]
	write(t, filepath.Join(tree, "CHANGELOG.md"), "## "+r.version[1:]+" (2006-01-02)\n")
	r.run(t, tree, "git", "commit", "-q", "-a", "-m", "changelog")
	r.run(t, tree, ".ci/tag", r.version)
	named := r.run(t, tree, "git", "grep", "-hoE", `^(appV|v)ersion: [0-9].*|example\.com/leafsql:[0-9][0-9A-Za-z.-]*|VERSION=v[0-9][0-9A-Za-z.-]*|`+modulePath+`[a-z/]*[@ ]v[0-9][0-9A-Za-z.-]*`,
		r.version, "--", "*.md", "*.yaml", "*go.mod", ":!CHANGELOG.md", ":!docs/contributing")
	for line := range strings.Lines(named) {
		if !strings.HasSuffix(strings.TrimSpace(line), r.version[1:]) {
			t.Errorf("a file of the release contains %q, want the version %s", line, r.version)
		}
	}
	if n := strings.Count(named, "\n"); n < 40 {
		t.Errorf("files of the release contain %d versions of leafsql, want at least 40", n)
	}
	if hint := regexp.MustCompile("(?i).*(unreleased|not released yet|尚未发布|before the first release|until a version|第一次发布|第一个版本).*").FindString(
		r.run(t, tree, "git", "grep", "-h", "", r.version, "--", "*.md", ":!docs/contributing")); hint != "" {
		t.Errorf("a page of the release contains %q, want no hint for users of a clone", hint)
	}
	r.tags = strings.Fields(r.run(t, tree, "git", "tag"))

	proxy, cache := t.TempDir(), r.run(t, tree, "go", "env", "GOMODCACHE")
	for _, tag := range r.tags {
		folder := strings.TrimSuffix(strings.TrimSuffix(tag, r.version), "/")
		path := strings.TrimSuffix(modulePath+"/"+folder, "/")
		var content bytes.Buffer
		if err := zip.CreateFromVCS(&content, modules.Version{Path: path, Version: r.version}, tree, tag, folder); err != nil {
			t.Fatal(err)
		}
		for name, text := range map[string]string{
			"list":              r.version,
			r.version + ".info": `{"Version": "` + r.version + `"}`,
			r.version + ".mod":  r.run(t, tree, "git", "show", tag+":"+filepath.Join(folder, "go.mod")),
			r.version + ".zip":  content.String(),
		} {
			write(t, filepath.Join(proxy, path, "@v", name), text)
		}
		t.Cleanup(func() {
			kept, _ := filepath.Glob(filepath.Join(cache, "cache/download", path, "@v", r.version+".*"))
			for _, file := range append(kept, filepath.Join(cache, path+"@"+r.version)) {
				os.RemoveAll(file)
			}
		})
	}
	r.env = append(r.env, "GOPROXY=file://"+proxy+","+r.run(t, tree, "go", "env", "GOPROXY"))
	return r
}

// copyTree copies this repository's tree to a separate folder and returns the folder.
func copyTree(t *testing.T) string {
	to := t.TempDir()
	err := filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		switch name := entry.Name(); {
		case err != nil:
			return err
		case entry.IsDir() && strings.HasPrefix(name, ".") && name != ".." && name != ".ci":
			return filepath.SkipDir
		case name == ".git" || !entry.Type().IsRegular():
			return nil
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		copied := filepath.Join(to, strings.TrimPrefix(path, ".."))
		write(t, copied, string(data))
		info, err := entry.Info()
		return cmp.Or(err, os.Chmod(copied, info.Mode()))
	})
	if err != nil {
		t.Fatal(err)
	}
	return to
}

// An outsideModule is a module outside, with the requirements of its go.mod besides leafsql.
type outsideModule struct {
	dir      string
	required []string
}

// guest creates a module that imports packages of ours.
func (r *release) guest(t *testing.T, packages ...string) outsideModule {
	t.Helper()
	g := outsideModule{dir: t.TempDir()}
	mod, code := "module example.com/guest\n\ngo 1.26.0\n", "package guest\n"
	for _, pkg := range packages {
		module := modulePath
		if slices.Contains(r.tags, pkg+"/"+r.version) {
			module += "/" + pkg
		}
		mod += fmt.Sprintf("require %s %s\n", module, r.version)
		code += fmt.Sprintf("import _ %q\n", modulePath+"/"+pkg)
	}
	write(t, filepath.Join(g.dir, "go.mod"), mod)
	write(t, filepath.Join(g.dir, "guest.go"), code)
	r.run(t, g.dir, "go", "mod", "tidy")
	for line := range strings.Lines(r.run(t, g.dir, "go", "mod", "edit", "-print")) {
		line = strings.TrimSuffix(strings.TrimSpace(strings.TrimPrefix(line, "require ")), " // indirect")
		if strings.Contains(line, " v") && !strings.HasPrefix(line, modulePath) {
			g.required = append(g.required, line)
		}
	}
	return g
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// run returns a command's output, without surrounding white space.
func (r *release) run(t *testing.T, dir string, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Env = dir, r.env
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s %s: %v\n%s%s", name, strings.Join(args, " "), err, out.String(), errs.String())
	}
	return strings.TrimSpace(out.String())
}
