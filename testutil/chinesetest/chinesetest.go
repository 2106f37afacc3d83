// Package chinesetest compares a package's Chinese texts with the texts that the
// package shows.
//
//	chinesetest.Check(t, chinese, append(chinesetest.CollectTexts(t, ".", "say"), columns...))
package chinesetest

import (
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

// Check fails the test unless every shown text has a translation with the same
// arguments, and every translation belongs to a shown text.
func Check(t *testing.T, texts chinese.Texts, shown []string) {
	t.Helper()
	for _, english := range slices.Compact(slices.Sorted(slices.Values(shown))) {
		translation, ok := texts[english]
		switch {
		case !ok && !letter.MatchString(verb.ReplaceAllString(english, "")): // without its arguments, the text has no letters
		case !ok:
			t.Errorf("%q is shown, and has no translation", english)
		case !maps.Equal(formatVerbs(translation), formatVerbs(english)):
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

var letter = regexp.MustCompile(`[A-Za-z]`)

var verb = regexp.MustCompile(`%(?:%|[-+# 0-9.]*(?:\[(\d+)\])?([a-z]))`)

// formatVerbs returns the verbs of a format, each with its argument. Their flags, such as a width, may differ.
func formatVerbs(format string) map[string]bool {
	all := make(map[string]bool)
	next := 1
	for _, m := range verb.FindAllStringSubmatch(format, -1) {
		if m[2] == "" { // %%
			continue
		}
		if m[1] != "" {
			next, _ = strconv.Atoi(m[1])
		}
		all[strconv.Itoa(next)+m[2]] = true
		next++
	}
	return all
}

// CollectTexts returns texts from the code of a folder, without tests: the first string argument of the functions
// and methods in names, and the texts assigned to the variables and fields in names. It returns every text of a
// list.
func CollectTexts(t *testing.T, folder string, names ...string) (shown []string) {
	t.Helper()
	texts := func(e ast.Expr) []string { return constantTexts(t, e) }
	inspect(t, folder, func(n ast.Node) {
		switch n := n.(type) {
		case *ast.CallExpr:
			if slices.Contains(names, exprName(n.Fun)) {
				for _, arg := range n.Args {
					if found := texts(arg); len(found) > 0 {
						shown = append(shown, found...)
						break
					}
				}
			}
		case *ast.KeyValueExpr:
			if slices.Contains(names, exprName(n.Key)) {
				shown = append(shown, texts(n.Value)...)
			}
		case *ast.AssignStmt:
			for i, left := range n.Lhs {
				if slices.Contains(names, exprName(left)) {
					shown = append(shown, texts(n.Rhs[min(i, len(n.Rhs)-1)])...)
				}
			}
		}
	})
	return shown
}

// CollectUsages returns the texts of the flags that the code of a folder defines.
func CollectUsages(t *testing.T, folder string) (shown []string) {
	t.Helper()
	place := map[string]int{"Func": 1, "Bool": 2, "Int": 2, "String": 2, "Duration": 2, "BoolVar": 3, "IntVar": 3, "StringVar": 3, "DurationVar": 3}
	inspect(t, folder, func(n ast.Node) {
		if call, ok := n.(*ast.CallExpr); ok && place[exprName(call.Fun)] > 0 && place[exprName(call.Fun)] < len(call.Args) {
			shown = append(shown, constantTexts(t, call.Args[place[exprName(call.Fun)]])...)
		}
	})
	return shown
}

// inspect calls f for each node of a folder's code.
func inspect(t *testing.T, folder string, f func(ast.Node)) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatal("no code in ", folder, err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		tree, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(tree, func(n ast.Node) bool {
			f(n)
			return true
		})
	}
}

// exprName returns the name of a function, a variable or a field.
func exprName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		if exprName(e.X) != "fmt" { // fmt writes English
			return e.Sel.Name
		}
	}
	return ""
}

// constantTexts returns the texts of an expression, which may be a list. A text that is built at run time cannot
// be translated.
func constantTexts(t *testing.T, e ast.Expr) (all []string) {
	if text, ok := constant(e); ok {
		return []string{text}
	}
	var elements []ast.Expr
	switch e := e.(type) {
	case *ast.CompositeLit:
		elements = e.Elts
	case *ast.CallExpr:
		if exprName(e.Fun) == "append" {
			elements = e.Args
		}
	case *ast.BinaryExpr:
		for _, part := range []ast.Expr{e.X, e.Y} {
			if text, ok := constant(part); !ok {
				constantTexts(t, part)
			} else if letter.MatchString(text) {
				t.Errorf("%q is part of a text that is put together: give the whole one as a format", text)
			}
		}
	}
	for _, element := range elements {
		all = append(all, constantTexts(t, element)...)
	}
	return all
}

// constant returns the value of a string constant, or of several concatenated ones.
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
