package calltrace

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// writeOverlay writes instrumented copies of this module's source files that the package in the current directory
// is built from. It returns the overlay file with which go build uses the copies.
func writeOverlay(t *testing.T) string {
	t.Helper()
	const ours = `{{with .Module}}{{if .Main}}{{$root := .Dir}}{{with $}}{{$dir := .Dir}}{{range .GoFiles}}{{$root}}	{{$dir}}	{{.}}{{"\n"}}{{end}}{{end}}{{end}}{{end}}`
	list, err := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", ours, ".").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	folder, instead := t.TempDir(), make(map[string]string)
	for line := range strings.Lines(string(list)) {
		cells := strings.Split(strings.TrimSpace(line), "\t")
		if len(cells) != 3 {
			continue
		}
		file := filepath.Join(cells[1], cells[2])
		name, err := filepath.Rel(cells[0], file)
		if err != nil {
			t.Fatal(err)
		}
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		traced, err := instrument(filepath.ToSlash(name), source)
		if err != nil {
			t.Fatal(err)
		}
		instead[file] = filepath.Join(folder, strconv.Itoa(len(instead))+".go")
		if err := os.WriteFile(instead[file], traced, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	text, err := json.Marshal(map[string]any{"Replace": instead})
	if err != nil {
		t.Fatal(err)
	}
	replace := filepath.Join(folder, "overlay.json")
	if err := os.WriteFile(replace, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return replace
}

// instrument adds a call of Enter at the beginning of each function of a file. No line moves.
func instrument(name string, source []byte) ([]byte, error) {
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, name, source, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	written := 0
	insert := func(at token.Pos, text string) {
		offset := fset.Position(at).Offset
		out.Write(source[written:offset])
		out.WriteString(text)
		written = offset
	}
	imported := false
	for _, decl := range f.Decls {
		fn, ok := decl.(*ast.FuncDecl)
		if !ok || fn.Body == nil {
			continue
		}
		if !imported {
			insert(f.Name.End(), fmt.Sprintf("; import calltrace %q", pkg))
			imported = true
		}
		insert(fn.Body.Lbrace+1, fmt.Sprintf(" calltrace.Enter(%q);", name+":"+funcName(fn)))
	}
	out.Write(source[written:])
	return out.Bytes(), nil
}

// funcName returns a function's name, with its receiver's type if it is a method.
func funcName(fn *ast.FuncDecl) string {
	if fn.Recv == nil {
		return fn.Name.Name
	}
	of := ""
	ast.Inspect(fn.Recv.List[0].Type, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok && of == "" {
			of = id.Name + "."
		}
		return of == ""
	})
	return of + fn.Name.Name
}
