package docs

import (
	"bytes"
	"flag"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "TestAPI writes api.txt, and TestErrorsPageListsAll errors.md")

// TestAPI: api.txt lists the exported names of the packages, so that every change of them
// is seen in review.
func TestAPI(t *testing.T) {
	var lines []string
	for _, pkg := range goList(t, module+"...") {
		pkg = strings.TrimPrefix(pkg, module)
		if !testOnly.MatchString(pkg) && !strings.Contains("/"+pkg+"/", "/internal/") {
			lines = append(lines, listAPI(t, pkg, pkg, nil)...)
		}
	}
	is := strings.Join(lines, "\n") + "\n"
	if *update {
		if err := os.WriteFile("api.txt", []byte(is), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile("api.txt")
	if err != nil {
		t.Fatal(err)
	}
	was := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	for _, line := range lines {
		if !slices.Contains(was, line) {
			t.Errorf("api.txt lacks %s, which the packages have", line)
		}
	}
	for _, line := range was {
		if !slices.Contains(lines, line) {
			t.Errorf("api.txt has %s, which the packages no longer have", line)
		}
	}
	if t.Failed() {
		t.Error("if the change of the API is intended, run go test -C docs -run TestAPI -update, and add a line to CHANGELOG.md")
	}
}

// listAPI lists the exported names of a package, with one line for each function, method,
// type, field or constant. An alias is listed like a type of the package. If aliases is
// set, dir is the folder of the aliased types, and aliases has their names in pkg.
func listAPI(t *testing.T, pkg, dir string, aliases map[string]string) (lines []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	elsewhere := make(map[string]map[string]string) // folder -> the aliased types in it
	set := token.NewFileSet()
	print := func(prefix string, node any) {
		var b bytes.Buffer
		if err := format.Node(&b, set, node); err != nil {
			t.Fatal(err)
		}
		lines = append(lines, pkg+": "+prefix+strings.Join(strings.Fields(b.String()), " "))
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(set, file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.FileExports(f)
		for _, decl := range f.Decls {
			switch d := decl.(type) {
			case *ast.FuncDecl:
				if d.Recv != nil {
					of := d.Recv.List[0].Type
					if pointer, ok := of.(*ast.StarExpr); ok {
						of = pointer.X
					}
					if name, ok := of.(*ast.Ident); ok && (!name.IsExported() || aliases != nil && aliases[name.Name] == "") {
						continue
					}
				} else if aliases != nil {
					continue
				}
				d.Body = nil
				print("", d)
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					switch s := spec.(type) {
					case *ast.ValueSpec:
						for _, name := range s.Names {
							if aliases == nil {
								print(d.Tok.String()+" ", name)
							}
						}
					case *ast.TypeSpec:
						if of, ok := s.Type.(*ast.SelectorExpr); ok && s.Assign.IsValid() {
							for _, imported := range f.Imports {
								path := strings.Trim(imported.Path.Value, `"`)
								if from, ours := strings.CutPrefix(path, module); ours && filepath.Base(path) == of.X.(*ast.Ident).Name {
									if elsewhere[from] == nil {
										elsewhere[from] = make(map[string]string)
									}
									elsewhere[from][of.Sel.Name] = s.Name.Name
								}
							}
							continue
						}
						if aliases != nil {
							if s.Name.Name = aliases[s.Name.Name]; s.Name.Name == "" {
								continue
							}
						}
						var members *ast.FieldList
						switch of := s.Type.(type) {
						case *ast.StructType:
							members, of.Fields, of.Incomplete = of.Fields, &ast.FieldList{}, false
						case *ast.InterfaceType:
							members, of.Methods, of.Incomplete = of.Methods, &ast.FieldList{}, false
						}
						print("type ", s)
						if members == nil {
							continue
						}
						for _, m := range members.List {
							names := ""
							for _, n := range m.Names {
								names += n.Name + " "
							}
							print("type "+s.Name.Name+", "+names, m.Type)
						}
					}
				}
			}
		}
	}
	for from, names := range elsewhere {
		lines = append(lines, listAPI(t, pkg, from, names)...)
	}
	slices.Sort(lines)
	return lines
}

// TestEveryFunctionHasAnExample: every exported function of the packages has an
// example.
func TestEveryFunctionHasAnExample(t *testing.T) {
	text, err := os.ReadFile("api.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`(?m)^(\S+): func ([A-Z]\w*)\(`).FindAllStringSubmatch(string(text), -1) {
		if !declaresFunc(t, m[1], "Example"+m[2]) {
			t.Errorf("%s has no Example%s, want one", m[1], m[2])
		}
	}
}
