// Prose finds words in Go comments and Markdown pages that make a sentence hard to read, and suggests plainer ones:
//
//	go run ./testutil/prose [file or folder ...]
//
// Without arguments it reads the whole tree below the current folder. It prints file:line, the words and the better
// words, and exits with 1 if there are any. It does not check words in quotes and in code, words that are identifiers of
// the file, generated files, testdata and the Chinese pages.
package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// A rule lists words and what to write instead.
type rule struct {
	words  *regexp.Regexp
	better string
}

func words(expr string) *regexp.Regexp { return regexp.MustCompile(`(?i)\b(?:` + expr + `)\b`) }

// rules apply to comments and pages.
var rules = []rule{
	{words(`says|said|tells|told`), "returns, reports, records, shows, is set"},
	{words(`stands|stood`), "is, is in, remains"},
	{words(`behind`), "after"},
	{words(`beside`), "next to, as well as"},
	{words(`anew`), "again"},
	{words(`likewise`), "also, same"},
	{words(`mend|mends|mended|mending`), "fix"},
	{words(`(?-i:go on)|goes on|went on`), "continue, resume"},
	{words(`ways? out`), "workaround, hint"},
	{words(`under way`), "pending, in progress"},
	{words(`an own`), "a possessive: its own"},
}

// commentRules apply to comments only: pages ask questions, and address people.
var commentRules = []rule{
	{words(`who|whoever|whom`), "name the subject: the caller, the client, the process"},
	{words(`what\s+(?:is|are|was|were|of|has)`), "name the thing: the cached entries"},
}

// fine matches phrases that contain words of the rules and are plain English.
var fine = words(`(?:stands?|stood) for|(?:is|are|be|was|were|lags?|lagging|falls?|far|further|hours?|minutes?|seconds?)\s+behind(?:\s+by)?|` +
	`behind\s+(?:(?:a|an|the|its|one|another|every|such a)\s+)?(?:\w+\s+)?(?:HAProxy|MaxScale|ProxySQL|Router|prox(?:y|ies)|balancers?|nodes?|primary|sockets?)|from behind|left behind`)

// quoted matches quotations and code within a sentence.
var quoted = regexp.MustCompile("`[^`]*`" + `|"[^"]*"|“[^”]*”`)

var generated = regexp.MustCompile(`(?m)^// Code generated .* DO NOT EDIT\.$`)

// A finding is a place with words that a rule lists.
type finding struct {
	line          int
	words, better string
}

// blank replaces the matches of re in text by spaces, and keeps the line breaks.
func blank(text string, re *regexp.Regexp) string {
	return re.ReplaceAllStringFunc(text, func(s string) string {
		return strings.Map(func(r rune) rune {
			if r == '\n' {
				return r
			}
			return ' '
		}, s)
	})
}

// check applies rules to a text that begins at this line of its file.
func check(text string, line int, rules []rule) (found []finding) {
	text = blank(blank(text, quoted), fine)
	for _, r := range rules {
		for _, at := range r.words.FindAllStringIndex(text, -1) {
			w := strings.Join(strings.Fields(text[at[0]:at[1]]), " ")
			found = append(found, finding{line + strings.Count(text[:at[0]], "\n"), w, r.better})
		}
	}
	return found
}

// comments checks the comments of a Go file.
func comments(src []byte) ([]finding, error) {
	if generated.Match(src) {
		return nil, nil
	}
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, "", src, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	names := make(map[string]bool)
	ast.Inspect(file, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok {
			names[id.Name] = true
		}
		return true
	})
	var found []finding
	lines := strings.Split(string(src), "\n")
	for _, group := range file.Comments {
		var text strings.Builder
		for _, c := range group.List {
			for l := range strings.SplitSeq(c.Text, "\n") {
				l = strings.TrimPrefix(strings.TrimPrefix(l, "//"), "/*")
				if !strings.HasPrefix(l, "\t") && !strings.HasPrefix(l, " mutation:") { // code, and text that tests read
					text.WriteString(l)
				}
				text.WriteByte('\n')
			}
		}
		begin := set.Position(group.Pos())
		for _, f := range check(text.String(), begin.Line, slices.Concat(rules, commentRules)) {
			if !names[f.words] {
				found = append(found, f)
			}
		}
		trailing := strings.TrimSpace(lines[begin.Line-1][:begin.Column-1]) != ""
		first, _, _ := strings.Cut(strings.TrimSpace(text.String()), " ")
		if trailing && (first == "of" || first == "that") {
			found = append(found, finding{begin.Line, first, "begin a trailing comment with the noun"})
		}
	}
	for _, d := range file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Doc != nil {
			if w := strings.Fields(f.Doc.Text()); len(w) > 2 && w[0] == f.Name.Name && slices.Contains([]string{"is", "are", "was", "says"}, w[1]) &&
				!slices.Contains([]string{"like", "called", "deferred", "run"}, w[2]) {
				found = append(found, finding{set.Position(f.Doc.Pos()).Line, w[0] + " " + w[1], "begin with the name and a verb: returns, reports whether"})
			}
		}
	}
	return found, nil
}

// code matches the parts of a Markdown page that are not prose: blocks of code, HTML comments, and targets of links.
var code = regexp.MustCompile("(?ms)^[ >]*```.*?^[ >]*```|<!--.*?-->|" + `\]\([^)\n]*\)|^(?:    |\t)[^\n]*`)

// page checks a Markdown page.
func page(src []byte) []finding { return check(blank(string(src), code), 1, rules) }

// skipped reports whether a folder is not read.
func skipped(name string) bool {
	return strings.HasPrefix(name, ".") && name != "." && name != ".." && name != ".github" || slices.Contains([]string{"testdata", "zh-CN", "node_modules", "dist"}, name)
}

// read checks a file, or the files of a folder, and prints the findings. It returns their number.
func read(root string) (n int, err error) {
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if skipped(d.Name()) {
				return filepath.SkipDir
			}
			return nil
		}
		isGo, isPage := strings.HasSuffix(path, ".go"), strings.HasSuffix(path, ".md") && !strings.HasSuffix(path, ".zh-CN.md")
		if !isGo && !isPage {
			return nil
		}
		src, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		src = bytes.ReplaceAll(src, []byte("\r\n"), []byte("\n"))
		var found []finding
		if isGo {
			if found, err = comments(src); err != nil {
				return fmt.Errorf("%s: %w", path, err)
			}
		} else {
			found = page(src)
		}
		for _, f := range found {
			fmt.Printf("%s:%d: %q; better: %s\n", path, f.line, f.words, f.better)
		}
		n += len(found)
		return nil
	})
	return n, err
}

func main() {
	roots := os.Args[1:]
	if len(roots) == 0 {
		roots = []string{"."}
	}
	total := 0
	for _, root := range roots {
		n, err := read(root)
		if err != nil {
			fmt.Fprintln(os.Stderr, "prose:", err)
			os.Exit(2)
		}
		total += n
	}
	if total > 0 {
		fmt.Printf("prose: %d to reword\n", total)
		os.Exit(1)
	}
}
