package docs

import (
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// maxCircle is the largest number of files that may call each other in a circle, directly or through others: one of
// them cannot be understood without reading all.
const maxCircle = 3

// largerCircles has the packages with larger circles, and the number of files in the largest. The table
// may only shrink.
var largerCircles = map[string]int{}

// TestCirclesAreLimited limits the circles in each package of contributing/imports.md's table of imports, and in those of the command.
func TestCirclesAreLimited(t *testing.T) {
	all := importRows(t)
	for _, path := range goList(t, module+"cmd/leafsql/...") {
		all[strings.TrimPrefix(path, module)] = importRow{}
	}
	args := []string{"-export", "-deps", "-f", "{{.ImportPath}}\t{{.Dir}}\t{{.Export}}\t{{join .GoFiles \" \"}}"}
	for pkg := range all {
		args = append(args, module+pkg)
	}
	exports, folders, sources := make(map[string]string), make(map[string]string), make(map[string][]string)
	for _, line := range goList(t, args...) {
		cells := strings.Split(line, "\t")
		path := cells[0]
		folders[path], exports[path], sources[path] = cells[1], cells[2], strings.Fields(cells[3])
	}
	fset := token.NewFileSet()
	deps := importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	for _, pkg := range slices.Sorted(maps.Keys(all)) {
		var files []*ast.File
		for _, name := range sources[module+pkg] {
			f, err := parser.ParseFile(fset, filepath.Join(folders[module+pkg], name), nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			files = append(files, f)
		}
		uses := findUses(t, fset, files, deps)
		largest := 0
		for _, circle := range findCircles(uses) {
			largest = max(largest, len(circle))
			switch known := largerCircles[pkg]; {
			case len(circle) > max(known, maxCircle):
				t.Errorf("%s: files that use each other: %s; want at most %d", pkg, describeCircle(circle, uses), max(known, maxCircle))
			case len(circle) > maxCircle:
				t.Logf("%s: %s", pkg, describeCircle(circle, uses))
			}
		}
		if known, ok := largerCircles[pkg]; ok && (largest < known || largest <= maxCircle) {
			t.Errorf("%s: largest circle has %d files, want %d as in largerCircles; lower the number there, or remove the entry", pkg, largest, known)
		}
	}
	for pkg := range largerCircles {
		if _, ok := all[pkg]; !ok {
			t.Errorf("largerCircles has %s, want only packages in the table of contributing/imports.md", pkg)
		}
	}
}

// TestCirclesAreFound: the circles of an artificial package are found.
func TestCirclesAreFound(t *testing.T) {
	fset := token.NewFileSet()
	var files []*ast.File
	for name, source := range map[string]string{
		"call.go":   "package p; func call() { (thing{}).method() }",
		"method.go": "package p; type thing struct{ field int }; func (thing) method() { _ = variable }",
		"value.go":  "package p; var variable = constant; type asked interface{ answer() }",
		"const.go":  "package p; const constant = 1; func ask(a asked) { a.answer(); call(); local := 1; _ = local }",

		// Types, fields, and names of the same file are no dependencies, and one arrow
		// alone is no circle.
		"types.go": "package p; type other struct{ of thing }; func first(t thing) int { second(); return t.field }; func second() { call() }",
		"field.go": "package p; func reads(o other) thing { return o.of }; func again() { first(thing{}) }",
		"two.go":   "package p; func ping(n int) { if n > 0 { pong(n - 1) } }",
		"back.go":  "package p; func pong(n int) { ping(n) }",
	} {
		f, err := parser.ParseFile(fset, name, source, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	uses := findUses(t, fset, files, nil)
	var got []string
	for _, circle := range findCircles(uses) {
		got = append(got, describeCircle(circle, uses))
	}
	want := []string{
		"2 files use each other in a circle, at most 3 may: back.go two.go" +
			"\n\tback.go uses ping of two.go\n\ttwo.go uses pong of back.go",
		"4 files use each other in a circle, at most 3 may: call.go const.go method.go value.go" +
			"\n\tcall.go uses method of method.go\n\tconst.go uses call of call.go\n\tconst.go uses answer of value.go" +
			"\n\tmethod.go uses variable of value.go\n\tvalue.go uses constant of const.go",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// fileUses has, for each file of a package, the names that it uses from each other
// file.
type fileUses map[string]map[string][]string

// findUses returns the functions, methods, variables and constants that the files of a package use from each
// other. Types and fields do not count: they can be understood without their uses.
func findUses(t *testing.T, fset *token.FileSet, files []*ast.File, deps types.Importer) fileUses {
	t.Helper()
	info := types.Info{Uses: make(map[*ast.Ident]types.Object)}
	pkg, err := (&types.Config{Importer: deps}).Check(files[0].Name.Name, fset, files, &info)
	if err != nil {
		t.Fatal(err)
	}
	file := func(p token.Pos) string { return filepath.Base(fset.Position(p).Filename) }
	uses := make(fileUses)
	for id, object := range info.Uses {
		if object.Pkg() != pkg || object.Parent() != nil && object.Parent() != pkg.Scope() { // a method has no parent, and a local name has another one
			continue
		}
		if v, ok := object.(*types.Var); ok && v.IsField() {
			continue
		}
		if _, ok := object.(*types.TypeName); ok {
			continue
		}
		from, to := file(id.Pos()), file(object.Pos())
		if from == to || slices.Contains(uses[from][to], id.Name) {
			continue
		}
		if uses[from] == nil {
			uses[from] = make(map[string][]string)
		}
		uses[from][to] = append(uses[from][to], id.Name)
	}
	return uses
}

// findCircles returns the groups of files that use each other, directly or through
// others.
func findCircles(uses fileUses) (all [][]string) {
	reached := make(map[string]map[string]bool)
	var follow func(from, at string)
	follow = func(from, at string) {
		for to := range uses[at] {
			if !reached[from][to] {
				reached[from][to] = true
				follow(from, to)
			}
		}
	}
	for from := range uses {
		reached[from] = make(map[string]bool)
		follow(from, from)
	}
	for _, from := range slices.Sorted(maps.Keys(uses)) {
		var circle []string
		for to := range reached[from] {
			if reached[to][from] {
				circle = append(circle, to)
			}
		}
		slices.Sort(circle)
		if len(circle) > 0 && circle[0] == from {
			all = append(all, circle)
		}
	}
	return all
}

// describeCircle returns the files of a circle, with the names that each uses from the others.
func describeCircle(circle []string, uses fileUses) string {
	text := []string{fmt.Sprintf("%d files use each other in a circle, at most %d may: %s", len(circle), maxCircle, strings.Join(circle, " "))}
	for _, from := range circle {
		for _, to := range circle {
			if used := uses[from][to]; used != nil {
				slices.Sort(used)
				text = append(text, fmt.Sprintf("%s uses %s of %s", from, strings.Join(used, ", "), to))
			}
		}
	}
	return strings.Join(text, "\n\t")
}
