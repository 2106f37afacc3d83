package docs

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// questions are the first questions of users, in the words that they search a page
// for.
var questions = []struct{ english, chinese string }{
	{"GORM", "GORM"},
	{"database down", "数据库 挂"},
	{"ids restart", "重启 id"},
	{"writer without", "写入方 不用"},
	{"other languages", "其他语言"},
	{"cost", "开销"},
	{"16 databases", "16 个数据库"},
	{"id row batch", "批量 每一行 id"},
	{"read/write splitting", "读写分离"},
	{"choosing step", "step 多大"},
	{"snowflake", "雪花"},
	{"after migration", "迁移过"},
	{"rollback", "回滚"},
	{"MySQL 5.7", "MySQL 5.7"},
	{"Kubernetes", "Kubernetes"},
	{"outbox", "outbox"},
	{"sqlx", "sqlx"},
	{"sharding", "分库分表"},
	{"LAST_INSERT_ID()", "LAST_INSERT_ID()"},
	{"TiDB", "TiDB"},
	{"Vitess", "Vitess"},
	{"row bring own", "自带 的行"},
	{"clock set back", "时钟回拨"},
	{"transactions ROLLBACK", "事务 ROLLBACK"},
	{"metrics", "指标"},
	{"alerts", "告警"},
	{"Worker ids Nacos", "Nacos 机器号"},
	{"instanceId", "instanceId"},
	{"leafsql does statement", "leafsql 一条语句 做了什么"},
}

// TestQuestionsHaveHeadings: the words of each question are in a heading, to which the list of pages links.
func TestQuestionsHaveHeadings(t *testing.T) {
	for _, q := range questions {
		checkAnswered(t, "README.md", q.english)
		checkAnswered(t, "zh-CN/README.md", q.chinese)
	}
}

func checkAnswered(t *testing.T, index, words string) {
	t.Helper()
	for _, m := range link.FindAllStringSubmatch(readPage(t, index).text, -1) {
		path, anchor, _ := strings.Cut(m[1], "#")
		if !strings.HasSuffix(path, ".md") {
			continue
		}
		page := readPage(t, filepath.Join(filepath.Dir(index), path))
		at := slices.Index(page.anchors, anchor)
		if at < 0 {
			continue
		}
		title := page.headings[at]
		if !slices.ContainsFunc(strings.Fields(words), func(w string) bool { return !strings.Contains(strings.ToLower(title), strings.ToLower(w)) }) {
			return
		}
	}
	t.Errorf("%s leads to no heading with the words %q, want one", index, words)
}

// TestPagesAreListed: the list of pages is complete.
func TestPagesAreListed(t *testing.T) {
	files, err := filepath.Glob("*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, index := range []string{"README.md", "zh-CN/README.md"} {
		var listed []string
		for _, m := range link.FindAllStringSubmatch(readPage(t, index).text, -1) {
			path, _, _ := strings.Cut(m[1], "#")
			listed = append(listed, filepath.Base(path))
		}
		for _, file := range files {
			if !slices.Contains(listed, file) {
				t.Errorf("%s does not list %s, want it listed", index, file)
			}
		}
	}
}
