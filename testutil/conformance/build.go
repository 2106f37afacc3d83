//go:build unix

package main

import (
	"bytes"
	"embed"
	"fmt"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

const (
	self   = "github.com/leafsql/leafsql"
	ldflag = "-ldflags=-X github.com/go-sql-driver/mysql.driverName=mysql-inner -X github.com/go-sql-driver/mysql.driverNameTest=mysql -s -w"
)

//go:embed testdata
var testFiles embed.FS

// build writes a peer's files into dir, with the registration of "mysql" next
// to the tests of each of its packages, and compiles them. It returns the test
// binaries, in the order of the packages.
func (p peer) build(dir string) (bins []binary, err error) {
	root, err := run(".", "go", "list", "-m", "-f", "{{.Dir}}", self)
	if err != nil {
		return nil, err
	}
	tree := filepath.Join(dir, p.name)
	if err := p.source(root, tree); err != nil {
		return nil, err
	}
	for _, e := range p.edits {
		if err := e.apply(tree); err != nil {
			return nil, err
		}
	}
	if p.ownTests != "" {
		text, err := testFiles.ReadFile("testdata/" + p.ownTests)
		if err != nil {
			return nil, err
		}
		if err := os.WriteFile(filepath.Join(tree, p.pkgs[0], p.ownTests), text, 0o644); err != nil {
			return nil, err
		}
	}
	// The requirements of mysql-leaf, in the versions of this repository.
	edit := []string{"mod", "edit", "-go=1.26", "-require=" + self + "@v0.0.0", "-replace=" + self + "=" + root}
	for _, path := range p.without {
		edit = append(edit, "-droprequire="+strings.TrimSuffix(strings.TrimSuffix(path, "/stdlib"), "/godrv"))
	}
	for i, path := range p.stubs {
		stub := fmt.Sprintf("./leafsql_stub_%d", i)
		if err := os.Mkdir(filepath.Join(tree, stub), 0o755); err != nil {
			return nil, err
		}
		if err := os.WriteFile(filepath.Join(tree, stub, "go.mod"), []byte("module "+path+"\n"), 0o644); err != nil {
			return nil, err
		}
		edit = append(edit, "-replace="+path+"="+stub)
	}
	if _, err := run(tree, "go", edit...); err != nil {
		return nil, err
	}
	if err := addSums(filepath.Join(root, "go.sum"), filepath.Join(tree, "go.sum")); err != nil {
		return nil, err
	}
	for i, pkg := range p.pkgs {
		b := binary{pkg: pkg, path: filepath.Join(dir, fmt.Sprintf("%s-%d.test", p.name, i)), tree: tree, folder: filepath.Join(tree, pkg)}
		if err := p.addDriver(b.folder); err != nil {
			return nil, err
		}
		if _, err := run(b.folder, "go", "test", "-mod=mod", "-vet=off", "-tags="+p.tags, "-c", ldflag, "-o", b.path, "."); err != nil {
			return nil, err
		}
		bins = append(bins, b)
	}
	return bins, nil
}

// A binary contains the tests of one package. It runs in the package's folder of a tree.
type binary struct{ pkg, path, tree, folder string }

// addDriver drops imports of other databases' drivers from the tests and adds the
// file that registers "mysql". The file is in the external test package: the
// internal one cannot import packages that import the package under test.
func (p peer) addDriver(folder string) error {
	files, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		return err
	}
	name := ""
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, text, parser.PackageClauseOnly)
		if err != nil {
			return err
		}
		if name == "" {
			name = strings.TrimSuffix(f.Name.Name, "_test")
		}
		for _, path := range p.without {
			text = bytes.ReplaceAll(text, []byte("\t_ \""+path+"\"\n"), nil)
		}
		if err := os.WriteFile(file, text, 0o644); err != nil {
			return err
		}
	}
	register := "package " + name + "_test\n\n"
	if p.init != "" {
		register += "import \"" + p.module + "\"\n"
	}
	register += "import _ \"" + self + "/testutil/conformance/through\"\n\nfunc init() { " + p.init + "\n}\n"
	return os.WriteFile(filepath.Join(folder, "leafsql_conformance_test.go"), []byte(register), 0o644)
}

// addSums appends one go.sum to another.
func addSums(from, to string) error {
	text, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(to, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	if _, err := f.Write(text); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}

// run returns the output of a command.
func run(dir string, name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0") // SQLite, which many peers import, is not used
	out, err := cmd.Output()
	if err != nil {
		if exit, ok := err.(*exec.ExitError); ok {
			out = append(out, exit.Stderr...)
		}
		return "", fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out)), nil
}
