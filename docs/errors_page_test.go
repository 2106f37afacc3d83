package docs

import (
	"cmp"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// errorsPage has the texts of errors.md, in English and Chinese, around the rows from the other pages' tables.
var errorsPage = map[string]struct{ intro, errors, refusals, lines, refusal, more string }{
	"": {
		"# Index of errors and log lines\n\nAll errors and log lines in alphabetical order. Search this page for a part of the text; the last column links to the solution.\n",
		"## Error types\n\nGo programs find these types with `errors.As`. `leafsql serve` returns the words as `type`.\n\n| error | meaning | solution |",
		"## Refused statements\n\n| part of the error | statement |", "## Log lines\n\n| line | meaning | solution |",
		"- Error: ", "more",
	},
	"zh-CN/": {
		"# 错误和日志索引\n\n全部错误和日志，按字母顺序排列。用其中一段文字在本页搜索；最后一列链接到处理办法。\n",
		"## 错误类型\n\nGo 程序用 `errors.As` 取出这些类型。`leafsql serve` 把表里的词作为 `type` 返回。\n\n| 错误 | 含义 | 处理办法 |",
		"## 被拒绝的语句\n\n| 错误中的一段 | 语句 |", "## 日志\n\n| 日志 | 含义 | 处理办法 |",
		"- 错误：", "详情",
	},
}

// TestErrorsPageListsAll: errors.md lists the rows of all tables of errors and log lines, and the errors of refused statements. With -update
// the test writes the page.
func TestErrorsPageListsAll(t *testing.T) {
	for folder, texts := range errorsPage {
		page := texts.intro
		for _, list := range []struct {
			heading string
			rows    []string
		}{
			{texts.errors, append(indexRows(t, folder, "operations.md", "## Errors"), indexRows(t, folder, "serve.md", "### Errors")...)},
			{texts.refusals, refusalRows(t, folder, texts.refusal)},
			{texts.lines, slices.Concat(indexRows(t, folder, "operations.md", "### Log lines"), indexRows(t, folder, "serve.md", "### Log lines of the server"),
				indexRows(t, folder, "proxy.md", "## Log lines of the proxy"))},
		} {
			slices.SortStableFunc(list.rows, func(a, b string) int { return cmp.Compare(sortKey(a), sortKey(b)) })
			dashes := strings.Repeat("| --- ", strings.Count(list.heading[strings.LastIndex(list.heading, "\n"):], "|")-1)
			page += "\n" + list.heading + "\n" + dashes + "|\n" + strings.Join(list.rows, "\n") + "\n"
		}
		file := folder + "errors.md"
		if *update {
			if err := os.WriteFile(file, []byte(page), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := os.ReadFile(file); err != nil || string(got) != page {
			t.Errorf("%s differs from the tables of the other pages (%v), want the same rows; run go test -C docs -run TestErrorsPage -update .", file, err)
		}
	}
}

// sortKey returns the key by which a row of the index is sorted, the same in both languages.
func sortKey(row string) string {
	return strings.ToLower(regexp.MustCompile(`[^\p{Latin} ]`).ReplaceAllString(strings.Join(quotedTexts(row[:strings.Index(row[1:], "|")+1]), " "), ""))
}

// indexRows returns the rows of a table for the index, by its English heading. Rows that only continue another row are left out.
func indexRows(t *testing.T, folder, file, heading string) []string {
	t.Helper()
	page := readPage(t, folder+file)
	i := slices.Index(readPage(t, file).headings, strings.TrimLeft(heading, "# "))
	var rows []string
	for _, cells := range readTable(t, folder+file, heading[:strings.Index(heading, " ")+1]+page.headings[i]) {
		if strings.HasPrefix(cells[0], "–") {
			continue
		}
		meaning := cells[len(cells)-2]
		if file == "serve.md" && heading == "### Errors" {
			meaning = cells[2] // after the status
		}
		meaning = strings.ReplaceAll(meaning, "](#", "]("+file+"#")
		rows = append(rows, fmt.Sprintf("| %s | %s | [%s](%s#%s) |", cells[0], meaning, errorsPage[folder].more, file, page.anchors[i]))
	}
	return rows
}

// refusalRows returns the errors of refused statements, each with the heading that explains it.
func refusalRows(t *testing.T, folder, prefix string) []string {
	t.Helper()
	var rows []string
	var title string
	for _, line := range strings.Split(regexp.MustCompile(`\n  +`).ReplaceAllString(readPage(t, folder+"what-is-filled.md").text, " "), "\n") {
		if m := heading.FindStringSubmatch(line); m != nil {
			title = m[1]
		}
		if errors, ok := strings.CutPrefix(line, prefix); ok {
			for _, text := range quotedTexts(errors) {
				rows = append(rows, fmt.Sprintf("| `%s` | [%s](what-is-filled.md#%s) |", text, title, anchor(title)))
			}
		}
	}
	return rows
}
