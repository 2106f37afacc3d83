package docs

import (
	"cmp"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// chinesePages returns all pages in Chinese, each with the English page that it
// translates.
func chinesePages(t *testing.T) map[string]string {
	t.Helper()
	files, err := filepath.Glob("zh-CN/*.md")
	if err != nil {
		t.Fatal(err)
	}
	english := map[string]string{"../README.zh-CN.md": "../README.md"}
	for _, file := range files {
		english[file] = filepath.Base(file)
	}
	return english
}

// TestChinese: every Chinese page has the same code as the English one, and its tables have the same
// rows.
func TestChinese(t *testing.T) {
	for file, english := range chinesePages(t) {
		zh, en := readPage(t, file), readPage(t, english)
		code := func(b block) string { return b.lang + "\n" + removeComments(b.code) }
		compareLists(t, zh, en, "code block", mapAll(zh.blocks, code), mapAll(en.blocks, code))
		compareLists(t, zh, en, "names in a table's first column", mapAll(zh.tables, cellNames), mapAll(en.tables, cellNames))
	}
}

// TestChineseFiguresMatch: every section of a Chinese page has as many paragraphs and list items as its English one, and the
// same figures and pictures. Numbers below ten do not count, since English pages write them as words.
func TestChineseFiguresMatch(t *testing.T) {
	for file, english := range chinesePages(t) {
		zh, en := sections(t, file), sections(t, english)
		for i := range min(len(zh), len(en)) {
			if got, want := figures(zh[i]), figures(en[i]); got != want {
				heading, _, _ := strings.Cut(zh[i], "\n")
				t.Errorf("%s: %q has the figures\n%s\nand %s has\n%s", file, heading, got, english, want)
			}
		}
		if len(zh) != len(en) {
			t.Errorf("%s has %d sections, want %d as in %s", file, len(zh), len(en), english)
		}
	}
}

var figure = regexp.MustCompile(`\d+(?:\.\d+)*|!\[`)

// sections splits a page at its headings.
func sections(t *testing.T, file string) []string {
	t.Helper()
	return regexp.MustCompile(`(?m)^#`).Split(readPage(t, file).text, -1)
}

// figures returns the level of a section's heading and its number of paragraphs and list items, followed by its figures
// in ascending order.
func figures(section string) string {
	paragraphs := len(regexp.MustCompile(`\n\n+`).Split(strings.TrimSpace(section), -1))
	items := len(regexp.MustCompile(`(?m)^ *(-|\d+\.) `).FindAllString(section, -1))
	level := 1 + len(section) - len(strings.TrimLeft(section, "#"))
	text := regexp.MustCompile("`[^`]*`|\\]\\([^)]*\\)").ReplaceAllString(section, "")
	all := figure.FindAllString(strings.ReplaceAll(text, ",", ""), -1)
	all = slices.DeleteFunc(all, func(f string) bool { return len(f) == 1 })
	slices.SortFunc(all, func(a, b string) int { return cmp.Or(len(a)-len(b), strings.Compare(a, b)) })
	return fmt.Sprintf("level %d, %d paragraphs, %d items: %s", level, paragraphs, items, strings.Join(all, " "))
}

// TestChineseLinks: Chinese pages link to the Chinese page if there is one, except for links that announce the English
// one.
func TestChineseLinks(t *testing.T) {
	all := chinesePages(t)
	for file := range all {
		for _, m := range regexp.MustCompile(`\[([^]]*)\]\(([^()#\s]+)`).FindAllStringSubmatch(readPage(t, file).text, -1) {
			target := filepath.Join(filepath.Dir(file), m[2])
			for chinese, english := range all {
				if english == target && m[1] != "English" && m[1] != "英文页" {
					t.Errorf("%s links to %s, want the Chinese page %s", file, m[2], chinese)
				}
			}
		}
	}
}

// TestChineseTerms: Chinese pages use the terms of the glossary, and the words that readers search for.
func TestChineseTerms(t *testing.T) {
	rejected := map[string]string{} // the term to use instead
	for _, row := range readTable(t, "contributing/chinese.md", "## Terms") {
		for _, term := range strings.FieldsFunc(row[2], func(r rune) bool { return r == '、' }) {
			rejected[term] = row[1]
		}
	}
	var all string
	for file := range chinesePages(t) {
		text := readPage(t, file).text
		for term, want := range rejected {
			if strings.Contains(text, term) {
				t.Errorf("%s has %s, want %s", file, term, want)
			}
		}
		all += text
	}
	for _, term := range []string{"分布式 ID", "号段模式", "雪花算法", "全局唯一", "发号器", "双 buffer", "动态步长", "时钟回拨", "趋势递增", "单调递增", "注册中心", "分库分表", "信息安全"} {
		if !strings.Contains(all, term) {
			t.Errorf("no Chinese page has the term %s, want it on one", term)
		}
	}
}

// compareLists reports the first difference between a page and its English page.
func compareLists(t *testing.T, zh, en page, what string, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		i := firstDifference(got, want)
		t.Errorf("%s: %s %d is not that of %s:\n%s\nwant\n%s", zh.file, what, i+1, en.file, itemAt(got, i), itemAt(want, i))
	}
}

// removeComments removes comments of Go and SQL, which are written in the page's own language.
func removeComments(code string) string {
	return regexp.MustCompile(`(?m)[ \t]*(//|-- ).*$`).ReplaceAllStringFunc(code, func(c string) string {
		if strings.HasPrefix(c, "-- on ") { // names the server
			return c
		}
		return ""
	})
}

// cellNames returns the names in the first cells of a table: their code and the headings of their links. Of a
// cell that has only words, just the row counts.
func cellNames(first []string) string {
	for i, cell := range first {
		first[i] = strings.Join(regexp.MustCompile("`[^`]*`|leaf[A-Z][A-Za-z]*").FindAllString(cell, -1), " ")
	}
	return strings.Join(first, "\n")
}

func mapAll[T any](all []T, f func(T) string) []string {
	var out []string
	for _, v := range all {
		out = append(out, f(v))
	}
	return out
}

func firstDifference(a, b []string) int {
	i := 0
	for i < min(len(a), len(b)) && a[i] == b[i] {
		i++
	}
	return i
}

func itemAt(all []string, i int) string {
	if i < len(all) {
		return all[i]
	}
	return "(none)"
}
