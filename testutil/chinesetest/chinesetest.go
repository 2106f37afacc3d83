// Package chinesetest holds a package's Chinese texts against what the package shows.
//
//	chinesetest.Check(t, chinese, append(chinesetest.Shown(t, ".", "say"), columns...))
package chinesetest

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/leafsql/leafsql/internal/chinese"
)

// Check holds that every text shown has a translation with the same arguments, and that
// there is none of a text that is not shown.
func Check(t *testing.T, texts chinese.Texts, shown []string) {
	t.Helper()
	for _, english := range slices.Compact(slices.Sorted(slices.Values(shown))) {
		translation, ok := texts[english]
		switch {
		case !ok:
			t.Errorf("%q is shown, and has no translation", english)
		case !maps.Equal(verbs(translation), verbs(english)):
			t.Errorf("%q takes other arguments than %q", translation, english)
		case strings.HasSuffix(english, "\n") != strings.HasSuffix(translation, "\n"):
			t.Errorf("%q ends otherwise than %q", translation, english)
		}
	}
	for english := range texts {
		if !slices.Contains(shown, english) {
			t.Errorf("%q is translated, and not shown", english)
		}
	}
}

var verb = regexp.MustCompile(`%(?:%|([-+# 0]*)(?:\[(\d+)\])?([\d.]*[a-z]))`)

// verbs are those of a format by the argument that they write. Their flags, such as a width, may differ.
func verbs(format string) map[string]bool {
	all := make(map[string]bool)
	next := 1
	for _, m := range verb.FindAllStringSubmatch(format, -1) {
		if m[3] == "" { // %%
			continue
		}
		if m[2] != "" {
			next, _ = strconv.Atoi(m[2])
		}
		all[fmt.Sprint(next, m[3][len(m[3])-1:])] = true
		next++
	}
	return all
}

// Shown are the texts, constants, that a folder's code gives to functions and methods of these names as their first
// argument which is one, or to fields of these names, without its tests.
func Shown(t *testing.T, folder string, names ...string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatal("no code in ", folder, err)
	}
	var shown []string
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		tree, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(tree, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CallExpr:
				if slices.Contains(names, name(n.Fun)) {
					for _, arg := range n.Args {
						if text, ok := constant(arg); ok {
							shown = append(shown, text)
							break
						}
					}
				}
			case *ast.KeyValueExpr:
				if text, ok := constant(n.Value); ok && slices.Contains(names, name(n.Key)) {
					shown = append(shown, text)
				}
			case *ast.AssignStmt:
				for i, left := range n.Lhs {
					if text, ok := constant(n.Rhs[min(i, len(n.Rhs)-1)]); ok && slices.Contains(names, name(left)) {
						shown = append(shown, text)
					}
				}
			}
			return true
		})
	}
	return shown
}

func name(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return e.Sel.Name
	}
	return ""
}

// constant is the text of a string, or of several that are added.
func constant(e ast.Expr) (string, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(e.Value)
		return text, err == nil && e.Kind == token.STRING
	case *ast.BinaryExpr:
		a, aok := constant(e.X)
		b, bok := constant(e.Y)
		return a + b, aok && bok
	}
	return "", false
}
