package docs

import (
	"encoding/json"
	"errors"
	"go/ast"
	"go/constant"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
)

// TestLogAttributesAreSnakeCase: the attributes of log lines have keys in snake_case, and no value is a time.Duration, which
// slog.JSONHandler writes in nanoseconds.
func TestLogAttributesAreSnakeCase(t *testing.T) {
	lines := 0
	for _, module := range []string{"..", "../nacos", "../cmd/leafsql", "../idgen/worker/redis", "../idgen/worker/etcd", "../idgen/worker/zookeeper"} {
		lines += checkLogAttributes(t, module)
	}
	if lines < 50 {
		t.Errorf("found %d log calls, want at least 50", lines)
	}
}

type listedPackage struct {
	ImportPath, Dir, Export string
	GoFiles                 []string
	Module                  *struct{ Main bool }
}

// checkLogAttributes checks the packages of a module, and returns the number of its log calls.
func checkLogAttributes(t *testing.T, module string) (lines int) {
	t.Helper()
	list := exec.Command("go", "list", "-export", "-deps", "-json=ImportPath,Dir,Export,GoFiles,Module", "./...")
	list.Dir, list.Stderr = module, os.Stderr
	out, err := list.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := list.Start(); err != nil {
		t.Fatal(err)
	}
	exports := map[string]string{}
	var own []listedPackage
	for d := json.NewDecoder(out); ; {
		var p listedPackage
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		if exports[p.ImportPath] = p.Export; p.Module != nil && p.Module.Main {
			own = append(own, p)
		}
	}
	if err := list.Wait(); err != nil {
		t.Fatal(err)
	}
	files := token.NewFileSet()
	imports := importer.ForCompiler(files, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	for _, p := range own {
		var parsed []*ast.File
		for _, name := range p.GoFiles {
			f, err := parser.ParseFile(files, filepath.Join(p.Dir, name), nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			parsed = append(parsed, f)
		}
		info := &types.Info{Types: map[ast.Expr]types.TypeAndValue{}}
		conf := types.Config{Importer: imports, FakeImportC: true, Error: func(error) {}} // the build reports errors
		conf.Check(p.ImportPath, files, parsed, info)
		for _, f := range parsed {
			ast.Inspect(f, func(n ast.Node) bool {
				if attributes, ok := logAttributes(info, n); ok {
					lines++
					checkAttributes(t, files, info, attributes)
				}
				return true
			})
		}
	}
	return lines
}

// logAttributes returns the keys and values of a call of a slog.Logger, or of a []any literal whose first element is
// a string, which becomes the arguments of such a call.
func logAttributes(info *types.Info, n ast.Node) ([]ast.Expr, bool) {
	switch n := n.(type) {
	case *ast.CallExpr:
		method, ok := n.Fun.(*ast.SelectorExpr)
		if !ok || n.Ellipsis.IsValid() {
			return nil, false
		}
		receiver := info.Types[method.X].Type
		if receiver == nil || receiver.String() != "*log/slog.Logger" {
			return nil, false
		}
		switch {
		case method.Sel.Name == "Log":
			return n.Args[3:], true
		case slices.Contains([]string{"Debug", "Info", "Warn", "Error"}, method.Sel.Name):
			return n.Args[1:], true
		}
	case *ast.CompositeLit:
		if typ := info.Types[n].Type; typ == nil || typ.String() != "[]any" || len(n.Elts) == 0 || len(n.Elts)%2 > 0 {
			return nil, false
		}
		if key := info.Types[n.Elts[0]].Value; key != nil && key.Kind() == constant.String {
			return n.Elts, true
		}
	}
	return nil, false
}

var snakeCase = regexp.MustCompile(`^[a-z]+(_[a-z]+)*$`)

func checkAttributes(t *testing.T, files *token.FileSet, info *types.Info, attributes []ast.Expr) {
	t.Helper()
	for i, e := range attributes {
		at := files.Position(e.Pos())
		if i%2 == 1 {
			if typ := info.Types[e].Type; typ != nil && typ.String() == "time.Duration" {
				t.Errorf("%s: a log line has a time.Duration, want its String()", at)
			}
			continue
		}
		key := info.Types[e].Value
		if key == nil || key.Kind() != constant.String || !snakeCase.MatchString(constant.StringVal(key)) {
			t.Errorf("%s: key of a log line = %v, want a constant in snake_case", at, key)
		}
	}
}
