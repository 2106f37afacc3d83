// Package mutants compiles a package's tests once, with many faults in the package, to find out whether the tests detect
// each fault. A function gets one more body for each of its faults, and an environment variable selects the fault of a
// run. The source on disk is not changed.
package mutants

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// An Edit replaces the bytes [From, To) of a file. They are in the body of one function.
type Edit struct {
	File     string
	From, To int
	Code     string
}

// Tests are the compiled tests of a package.
type Tests struct{ binary string }

// Build compiles the tests of the package in the current folder into dir. Each fault is a list of edits.
func Build(dir string, faults [][]Edit) (Tests, error) {
	edits := map[string]map[int][]Edit{} // file, fault
	for i, fault := range faults {
		for _, e := range fault {
			if edits[e.File] == nil {
				edits[e.File] = map[int][]Edit{}
			}
			edits[e.File][1+i] = append(edits[e.File][1+i], e)
		}
	}
	overlay := map[string]string{}
	replace := func(path, text string) error {
		path, err := filepath.Abs(path)
		if overlay[path] == "" {
			overlay[path] = filepath.Join(dir, fmt.Sprint(len(overlay), ".go"))
		}
		return errors.Join(err, os.WriteFile(overlay[path], []byte(text), 0o600))
	}
	for file, of := range edits {
		source, err := os.ReadFile(file)
		if err != nil {
			return Tests{}, err
		}
		name, text, err := withBodies(file, string(source), of)
		if err != nil {
			return Tests{}, err
		}
		const which = "import (\n\"os\"\n\"strconv\"\n)\n\nvar mutant, _ = strconv.Atoi(os.Getenv(\"LEAFSQL_TEST_MUTANT\"))\n"
		if err := errors.Join(replace(file, text), replace(filepath.Join(filepath.Dir(file), "mutant.go"), "package "+name+"\n\n"+which)); err != nil {
			return Tests{}, err
		}
	}
	list, err := json.Marshal(map[string]any{"Replace": overlay})
	if err != nil {
		return Tests{}, err
	}
	if err := os.WriteFile(filepath.Join(dir, "overlay.json"), list, 0o600); err != nil {
		return Tests{}, err
	}
	tests := Tests{filepath.Join(dir, "mutants.test")}
	out, err := exec.Command("go", "test", "-c", "-ldflags=-s -w", "-o", tests.binary, "-overlay="+filepath.Join(dir, "overlay.json"), ".").CombinedOutput()
	if err != nil {
		return Tests{}, fmt.Errorf("compiling: %w\n%s", err, out)
	}
	return tests, nil
}

// Run runs the tests with the fault of this index, or without a fault if the index is negative.
func (t Tests) Run(fault int, args ...string) (string, error) {
	cmd := exec.Command(t.binary, args...)
	cmd.Env = append(os.Environ(), fmt.Sprint("LEAFSQL_TEST_MUTANT=", 1+fault))
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// withBodies returns the name of a file's package, and the file's text with one more body for each function and fault.
// The keys of edits are the faults, counted from 1.
func withBodies(file, source string, edits map[int][]Edit) (name, text string, err error) {
	positions := token.NewFileSet()
	parsed, err := parser.ParseFile(positions, file, source, parser.SkipObjectResolution)
	if err != nil {
		return "", "", err
	}
	var b strings.Builder
	done := 0
	for _, d := range parsed.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Body == nil {
			continue
		}
		from, to := positions.Position(f.Body.Lbrace).Offset+1, positions.Position(f.Body.Rbrace).Offset
		b.WriteString(source[done:from])
		for _, fault := range slices.Sorted(maps.Keys(edits)) {
			body, at := "", from
			rest := edits[fault][:0:0]
			slices.SortFunc(edits[fault], func(a, b Edit) int { return a.From - b.From })
			for _, e := range edits[fault] {
				if e.From < from || e.To > to {
					rest = append(rest, e)
					continue
				}
				body, at = body+source[at:e.From]+e.Code, e.To
			}
			if edits[fault] = rest; at == from {
				continue
			}
			end := "}\n"
			if f.Type.Results == nil {
				end = "return\n}\n"
			}
			fmt.Fprintf(&b, "\nif mutant == %d {%s\n%s", fault, body+source[at:to], end)
		}
		done = from
	}
	for _, rest := range edits {
		if len(rest) > 0 {
			return "", "", fmt.Errorf("%s: bytes %d to %d are in no function", file, rest[0].From, rest[0].To)
		}
	}
	return parsed.Name.Name, b.String() + source[done:], nil
}
