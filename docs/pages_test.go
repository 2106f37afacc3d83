// Package docs has the pages for users, and the tests that keep them right: their examples run, their lists match the
// code, their links work, and the Chinese pages match the English ones.
package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A page is a Markdown file, split into the parts that tests use.
type page struct {
	file   string // relative to this folder
	text   string // without the code blocks
	blocks []block
	tables [][]string // for each table the first cells of its rows, without headings

	headings, anchors []string // as written, and as GitHub writes them in links
}

// A block is one fenced block of code.
type block struct {
	section string // the ## heading above it
	sub     string // the ### heading in that section, if any
	lang    string // language after the fence
	code    string
	line    int
}

// pagesRead caches the results of readPage: links lead to some pages a thousand times.
var pagesRead = map[string]page{}

func readPage(t *testing.T, file string) page {
	t.Helper()
	if p, ok := pagesRead[file]; ok {
		return p
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	p := page{file: file}
	var section, sub, fence string
	var prose []string
	for i, line := range strings.Split(string(text), "\n") {
		rest, fenced := strings.CutPrefix(line, "```")
		switch {
		case fenced && fence == "":
			fence = "```"
			p.blocks = append(p.blocks, block{section: section, sub: sub, lang: rest, line: i + 1})
		case fenced:
			fence = ""
		case fence != "":
			p.blocks[len(p.blocks)-1].code += line + "\n"
		default:
			if heading, ok := strings.CutPrefix(line, "## "); ok {
				section, sub = heading, ""
			}
			if heading, ok := strings.CutPrefix(line, "### "); ok {
				sub = heading
			}
			prose = append(prose, line)
		}
	}
	p.text = strings.Join(prose, "\n")
	for _, table := range regexp.MustCompile(`(?m)(?:^\|.*\n)+`).FindAllString(p.text+"\n", -1) {
		var first []string
		for _, row := range strings.Split(strings.TrimSpace(table), "\n")[2:] {
			first = append(first, splitCells(row)[0])
		}
		p.tables = append(p.tables, first)
	}
	for _, m := range heading.FindAllStringSubmatch(p.text, -1) {
		p.headings, p.anchors = append(p.headings, m[1]), append(p.anchors, anchor(m[1]))
	}
	pagesRead[file] = p
	return p
}

// splitCells splits a row of a table.
func splitCells(row string) []string {
	c := strings.Split(strings.Trim(strings.TrimSpace(row), "|"), "|")
	for i := range c {
		c[i] = strings.TrimSpace(c[i])
	}
	return c
}

// readTable returns the rows of the table under a heading of a page.
func readTable(t *testing.T, file, heading string) [][]string {
	t.Helper()
	p := readPage(t, file)
	_, text, found := strings.Cut(p.text, "\n"+heading+"\n")
	rows := regexp.MustCompile(`(?m)^\|.*$`).FindAllString(text[:max(0, strings.Index(text+"\n#", "\n#"))], -1)
	if !found || len(rows) < 3 {
		t.Fatalf("%s: %d rows under %q, want a table", file, len(rows), heading)
	}
	var all [][]string
	for _, row := range rows[2:] {
		all = append(all, splitCells(row))
	}
	return all
}

// listPages returns all Markdown files of the repository.
func listPages(t *testing.T) []string {
	t.Helper()
	var files []string
	for _, pattern := range []string{"../*.md", "*.md", "*/*.md", "../examples/*.md", "../.github/*.md", "../.github/*/*.md"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	return files
}

var (
	link    = regexp.MustCompile(`\]\(([^()\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ (.*)$`)
	dropped = regexp.MustCompile(`[^\p{L}\p{N}_\- ]`) // characters of headings that anchors lack
)

// TestLinksExist: the file of a relative link exists, and its heading too.
func TestLinksExist(t *testing.T) {
	for _, file := range listPages(t) {
		p := readPage(t, file)
		for _, m := range link.FindAllStringSubmatch(p.text, -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			path, anchor, _ := strings.Cut(m[1], "#")
			target := filepath.Join(filepath.Dir(file), path)
			if path == "" {
				target = file
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s links to %s, which does not exist, want an existing page", file, m[1])
			} else if anchor != "" && !slices.Contains(readPage(t, target).anchors, anchor) {
				t.Errorf("%s links to %s, which has no such heading, want an existing heading", file, m[1])
			}
		}
	}
}

func anchor(heading string) string {
	return strings.ReplaceAll(dropped.ReplaceAllString(strings.ToLower(heading), ""), " ", "-")
}

// TestExamplesAreInThePages: the packages' examples of whole pools are in the pages too.
func TestExamplesAreInThePages(t *testing.T) {
	flat := func(code string) string { return regexp.MustCompile(`(?m)^\t+`).ReplaceAllString(code, "") }
	for file, shown := range map[string]string{"../driver/example_test.go": "../README.md", "../nacos/example_test.go": "worker-ids.md"} {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`(?s)func Example(?:_shards|Open)?\(\) \{\n(.*?)\n(?:\t// Output: .*?\n)?\}\n`).FindAllStringSubmatch(string(source), -1) {
			if !slices.ContainsFunc(readPage(t, shown).blocks, func(b block) bool { return strings.Contains(flat(b.code), flat(m[1])) }) {
				t.Errorf("%s lacks the example of %s, want it:\n%s", shown, file, m[1])
			}
		}
	}
}

// TestFrontPagesAreShort: the pages that new readers open first have a page's length. Details belong to docs.
func TestFrontPagesAreShort(t *testing.T) {
	for file, most := range map[string]int64{"../README.md": 9 << 10, "../ARCHITECTURE.md": 14 << 10, "../CONTRIBUTING.md": 8 << 10} {
		info, err := os.Stat(file)
		if err != nil {
			t.Fatal(err)
		}
		if info.Size() > most {
			t.Errorf("%s has %d bytes, want at most %d", file, info.Size(), most)
		}
	}
}

// TestBenchmarksExist: the benchmarks in benchmarks.md exist.
func TestBenchmarksExist(t *testing.T) {
	for _, m := range regexp.MustCompile("`(Benchmark\\w+)` in (\\./[\\w/]+)").FindAllStringSubmatch(readPage(t, "benchmarks.md").text, -1) {
		if !declaresFunc(t, m[2], m[1]) {
			t.Errorf("benchmarks.md names %s in %s, which is not declared, want a declared benchmark", m[1], m[2])
		}
	}
}
