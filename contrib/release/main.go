// Command release makes the archives of a release: for each platform the command leafsql with its
// completions and licences, as well as bills of materials (CycloneDX), the Helm chart and SHA256SUMS.
//
//	make release VERSION=v0.2.0
//
// The archives do not depend on the time, machine or user: a build with the version of Go in the bills
// gives the same bytes.
package main

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
)

const (
	module = "github.com/leafsql/leafsql"
	// linked is added to -s -w in builds of releases, as in the Dockerfile.
	linked = "-X " + module + "/internal/version.built="
	sbom   = "github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod@v1.10.0"
)

// A release describes the archives to make of one tree.
type release struct {
	tree, out, version string
	work               string // folder for temporary files
}

func main() {
	var r release
	flag.StringVar(&r.tree, "tree", ".", "the clone of leafsql")
	flag.StringVar(&r.out, "out", "dist", "where the archives go")
	flag.StringVar(&r.version, "version", "", "such as v0.2.0")
	platforms := flag.String("platforms", "linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64 windows/arm64", "for which to build")
	flag.Parse()
	if r.version == "" || flag.NArg() > 0 {
		fmt.Fprintln(os.Stderr, "release: name a version, as in make release VERSION=v0.2.0")
		os.Exit(2)
	}
	if err := r.make(strings.Fields(*platforms)); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func (r *release) make(platforms []string) (err error) {
	if r.out, err = filepath.Abs(r.out); err != nil {
		return err
	}
	if err := os.MkdirAll(r.out, 0o755); err != nil {
		return err
	}
	if r.work, err = os.MkdirTemp("", "leafsql-release-"); err != nil {
		return err
	}
	defer os.RemoveAll(r.work)

	var common []file
	if common, err = r.completions(); err != nil {
		return err
	}
	for _, name := range []string{"LICENSE", "README.md", "CHANGELOG.md"} {
		text, err := os.ReadFile(filepath.Join(r.tree, name))
		if err != nil {
			return err
		}
		common = append(common, file{name, 0o644, text})
	}
	var sums strings.Builder
	keep := func(name string, content []byte) error {
		fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256(content), name)
		fmt.Println(name)
		return os.WriteFile(filepath.Join(r.out, name), content, 0o644)
	}
	for _, platform := range platforms {
		goos, goarch, _ := strings.Cut(platform, "/")
		program, err := r.build(goos, goarch)
		if err != nil {
			return err
		}
		files, err := r.programFiles(program, common)
		if err != nil {
			return err
		}
		name := fmt.Sprintf("leafsql_%s_%s_%s", r.version, goos, goarch)
		pack, suffix := packTar, ".tar.gz"
		if goos == "windows" {
			pack, suffix = packZip, ".zip"
		}
		archive, err := pack(name, files)
		if err != nil {
			return err
		}
		bill, err := r.billOfMaterials(program)
		if err != nil {
			return err
		}
		if err := cmp.Or(keep(name+suffix, archive), keep(name+".cdx.json", bill)); err != nil {
			return err
		}
	}
	chart, err := r.chart()
	if err != nil {
		return err
	}
	if err := keep("leafsql-chart_"+r.version+".tgz", chart); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(r.out, "SHA256SUMS"), []byte(sums.String()), 0o644)
}

// build compiles the command as the Dockerfile does.
func (r *release) build(goos, goarch string) (program string, err error) {
	program = filepath.Join(r.work, goos+"-"+goarch, "leafsql")
	if goos == "windows" {
		program += ".exe"
	}
	_, err = r.output(filepath.Join(r.tree, "cmd", "leafsql"), []string{"CGO_ENABLED=0", "GOAMD64=v1", "GOOS=" + goos, "GOARCH=" + goarch, "GOFLAGS=-trimpath -buildvcs=false -tags=timetzdata"},
		"go", "build", "-ldflags=-s -w "+linked+r.version, "-o", program, ".")
	return program, err
}

// billOfMaterials returns the bill of materials of a program. In it, the modules of this tree, which replace
// each other in go.mod, have their own names and the release's version.
func (r *release) billOfMaterials(program string) ([]byte, error) {
	text, err := r.output(r.tree, nil, "go", "run", sbom, "bin", "-json", "-std", "-noserial", "-notimestamp", "-version", r.version, program)
	text = regexp.MustCompile(`\.\./\.\.((?:/\w+)*)`).ReplaceAll(text, []byte(module+"$1"))
	return bytes.ReplaceAll(text, []byte("(devel)"), []byte(r.version)), err
}

// completions returns the scripts for the shells, written by the command built for this machine.
func (r *release) completions() (files []file, err error) {
	program, err := r.build(runtime.GOOS, runtime.GOARCH)
	if err != nil {
		return nil, err
	}
	for _, c := range []struct{ shell, name string }{{"bash", "leafsql.bash"}, {"zsh", "_leafsql"}, {"fish", "leafsql.fish"}} {
		script, err := r.output(r.tree, []string{"LANG=C", "LC_ALL=C"}, program, "completion", c.shell)
		if err != nil {
			return nil, err
		}
		files = append(files, file{"completions/" + c.name, 0o644, script})
	}
	return files, nil
}

// chart returns the archive of the Helm chart, with the release's version.
func (r *release) chart() ([]byte, error) {
	chart := os.DirFS(filepath.Join(r.tree, "contrib", "helm", "leafsql"))
	var files []file
	err := fs.WalkDir(chart, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := fs.ReadFile(chart, name)
		if name == "Chart.yaml" {
			text = regexp.MustCompile(`(?m)^((?:appV|v)ersion): .*`).ReplaceAll(text, []byte("$1: "+strings.TrimPrefix(r.version, "v")))
		}
		files = append(files, file{name, 0o644, text})
		return err
	})
	if err != nil {
		return nil, err
	}
	return packTar("leafsql", files)
}

// programFiles returns the program, and the licences of the modules linked into it.
func (r *release) programFiles(program string, common []file) ([]file, error) {
	text, err := os.ReadFile(program)
	if err != nil {
		return nil, err
	}
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		return nil, err
	}
	var licences bytes.Buffer
	for _, dep := range info.Deps {
		if dep.Replace != nil || strings.HasPrefix(dep.Path+"/", module+"/") { // leafsql's own
			continue
		}
		found, err := r.output(r.tree, nil, "go", "mod", "download", "-json", dep.Path+"@"+dep.Version)
		var at struct{ Dir string }
		if err == nil {
			err = json.Unmarshal(found, &at)
		}
		if err != nil {
			return nil, err
		}
		if err := writeLicence(&licences, dep.Path+" "+dep.Version, at.Dir); err != nil {
			return nil, err
		}
	}
	goroot, err := r.output(r.tree, nil, "go", "env", "GOROOT")
	if err == nil {
		err = writeLicence(&licences, "Go "+info.GoVersion, strings.TrimSpace(string(goroot)))
	}
	return append([]file{{filepath.Base(program), 0o755, text}, {"LICENSES-OF-DEPENDENCIES", 0o644, licences.Bytes()}}, common...), err
}

// writeLicence writes the licences and notices in a module's folder.
func writeLicence(w io.Writer, of, folder string) error {
	found := false
	entries, err := os.ReadDir(folder)
	for _, e := range entries {
		if name := strings.ToUpper(e.Name()); e.IsDir() || !strings.HasPrefix(name, "LICEN") && !strings.HasPrefix(name, "COPYING") && !strings.HasPrefix(name, "NOTICE") {
			continue
		}
		text, err := os.ReadFile(filepath.Join(folder, e.Name()))
		if err != nil {
			return err
		}
		found = true
		fmt.Fprintf(w, "==== %s: %s\n\n%s\n", of, e.Name(), text)
	}
	if err == nil && !found { // a few repositories have it outside of the module's folder
		fmt.Fprintf(w, "==== %s: the module holds no licence; see its repository\n\n", of)
	}
	return err
}

func (r *release) output(dir string, env []string, name string, args ...string) ([]byte, error) {
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, errs.String())
	}
	return out, nil
}
