package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestErrorsAreExplained: operations.md explains every exported error of the packages that applications import.
func TestErrorsAreExplained(t *testing.T) {
	var errors, explained []string
	forEachFile(t, imported, []string{"internal", "testdata"}, func(file *ast.File) {
		for _, decl := range file.Decls {
			switch d := decl.(type) {
			case *ast.FuncDecl: // func (e *X) Error() string
				if d.Recv != nil && d.Name.Name == "Error" && len(d.Type.Params.List) == 0 {
					receiver := d.Recv.List[0].Type
					if star, ok := receiver.(*ast.StarExpr); ok {
						receiver = star.X
					}
					if name := receiver.(*ast.Ident).Name; ast.IsExported(name) {
						errors = append(errors, file.Name.Name+"."+name)
					}
				}
			case *ast.GenDecl: // var ErrX = …, type XError = …
				for _, spec := range d.Specs {
					if alias, ok := spec.(*ast.TypeSpec); ok && alias.Assign.IsValid() && strings.HasSuffix(alias.Name.Name, "Error") {
						errors = append(errors, file.Name.Name+"."+alias.Name.Name)
					}
					if v, ok := spec.(*ast.ValueSpec); ok && d.Tok == token.VAR && strings.HasPrefix(v.Names[0].Name, "Err") {
						errors = append(errors, file.Name.Name+"."+v.Names[0].Name)
					}
				}
			}
		}
	})
	for _, row := range readTable(t, "operations.md", "## Errors") {
		explained = append(explained, quotedTexts(row[0])...)
	}
	compareNames(t, "operations.md, Errors", explained, "the code", errors)
}

// TestLogLinesAreExplained: operations.md explains every log line of these packages, serve.md those of the server, and proxy.md
// those of the proxy.
func TestLogLinesAreExplained(t *testing.T) {
	logLines(t, imported, "operations.md", "### Log lines")
	logLines(t, []string{"../cmd/leafsql/internal/server", "../cmd/leafsql/internal/process"}, "serve.md", "### Log lines of the server")
	logLines(t, []string{"../cmd/leafsql/internal/proxyserver", "../cmd/leafsql/internal/process", "../proxy"}, "proxy.md", "## Log lines of the proxy")
}

func logLines(t *testing.T, roots []string, page, heading string) {
	t.Helper()
	var lines, explained []string
	forEachFile(t, roots, []string{"fakenacos", "testdata"}, func(file *ast.File) {
		constants := map[string]ast.Expr{}
		ast.Inspect(file, func(n ast.Node) bool {
			if c, ok := n.(*ast.ValueSpec); ok && len(c.Values) == 1 {
				constants[c.Names[0].Name] = c.Values[0]
			}
			call, ok := n.(*ast.CallExpr)
			if !ok || len(call.Args) == 0 {
				return true
			}
			message := 0
			if method, ok := call.Fun.(*ast.SelectorExpr); ok && method.Sel.Name == "Log" && len(call.Args) > 2 {
				message = 2 // after the context and the level
			} else if !ok || !slices.Contains([]string{"Debug", "Info", "Warn", "Error"}, method.Sel.Name) {
				return true
			}
			if line := strings.TrimPrefix(constantPrefix(call.Args[message], constants), "leafsql: "); line != "" && !slices.Contains(lines, line) {
				lines = append(lines, line)
			}
			return true
		})
	})
	for _, row := range readTable(t, page, heading) {
		explained = append(explained, quotedTexts(row[0])...)
	}
	compareNames(t, page+", "+heading, explained, "the code", lines)
}

// constantPrefix returns the constant beginning of an expression.
func constantPrefix(e ast.Expr, constants map[string]ast.Expr) string {
	switch e := e.(type) {
	case *ast.BinaryExpr:
		return constantPrefix(e.X, constants) + constantPrefix(e.Y, constants)
	case *ast.Ident:
		if value := constants[e.Name]; value != nil {
			return constantPrefix(value, nil)
		}
	case *ast.BasicLit:
		s, _ := strconv.Unquote(e.Value)
		return s
	}
	return ""
}

// imported has the folders of the packages that applications import.
var imported = []string{"../driver", "../idgen", "../nacos"}

// forEachFile parses the files in folders, except those in the folders without.
func forEachFile(t *testing.T, roots, without []string, visit func(*ast.File)) {
	t.Helper()
	for _, root := range roots {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if d.IsDir() && (slices.Contains(without, d.Name()) || strings.HasSuffix(d.Name(), "test")) {
				return filepath.SkipDir
			}
			if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return nil
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
			if err == nil {
				visit(file)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}
