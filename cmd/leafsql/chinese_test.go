package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/leafsql/leafsql/cmd/leafsql/internal/check"
	"github.com/leafsql/leafsql/cmd/leafsql/internal/screen"
	"github.com/leafsql/leafsql/testutil/chinesetest"
	"github.com/leafsql/leafsql/testutil/mysqltest"
)

// TestChinese: every text of the command has a translation.
func TestChinese(t *testing.T) {
	shown := append(chinesetest.CollectTexts(t, ".", "Printf", "Sprintf", "Text", "Table", "names", "way"), chinesetest.CollectUsages(t, ".")...)
	shown = append(shown, chinesetest.CollectTexts(t, "internal/server", "Sprintf")...)
	shown = append(shown, chinesetest.CollectUsages(t, "internal/server")...)
	shown = append(shown, chinesetest.CollectUsages(t, "internal/process")...)
	shown = append(shown, chinesetest.CollectTexts(t, "internal/check", "sprintf", "translate", "Message", "Fix", "Text", "Sprintf")...)
	shown = append(shown, "trigger", "routine", "event")
	for _, c := range commands {
		shown = append(shown, c.summary)
	}
	for _, text := range stepTexts {
		shown = append(shown, text.does, text.half)
	}
	for _, severity := range []check.Severity{check.Error, check.Warning, check.Unknown, check.Note} {
		shown = append(shown, string(severity))
	}
	chinesetest.Check(t, chineseTexts, shown)
}

// TestLocaleSelectsChinese: the texts are Chinese if the locale is Chinese and the terminal can display it.
func TestLocaleSelectsChinese(t *testing.T) {
	for _, c := range []struct {
		all, messages, lang string
		chinese             bool
	}{
		{"", "", "", false}, {"", "", "zh_CN.UTF-8", true}, {"", "", "zh_CN.utf8", true}, {"", "", "zh.UTF-8", true}, {"", "", "zh_CN.GBK", false}, {"", "", "zh_CN", false},
		{"", "", "en_US.UTF-8", false}, {"C", "", "zh_CN.UTF-8", false}, {"C.UTF-8", "", "zh_CN.UTF-8", false}, {"zh_SG.UTF-8", "", "C", true}, {"", "zh_CN.UTF-8", "C", true},
		{"", "en_US.UTF-8", "zh_CN.UTF-8", false},
	} {
		env := map[string]string{"LC_ALL": c.all, "LC_MESSAGES": c.messages, "LANG": c.lang}
		if got := localeTexts(func(name string) string { return env[name] }); (got != nil) != c.chinese {
			t.Errorf("localeTexts() with %v is Chinese: %t, want %t", env, got != nil, c.chinese)
		}
	}
}

// TestHelpAndResultsAreChinese: help and results are Chinese; codes, JSON and errors are English.
func TestHelpAndResultsAreChinese(t *testing.T) {
	dsn := mysqltest.Database(t)
	open(t, dsn, allocTable, "CREATE TABLE orders (id BIGINT NOT NULL PRIMARY KEY)")
	on := "-dsn " + dsn + "?leafTables=orders"
	for _, c := range []struct{ args, out, errs string }{
		{"help", "用法：leafsql 子命令", ""},
		{"help tags", "docs/zh-CN/command.md#tags", ""},
		{"tags -h", "-watch\n    \t不断刷新，直到被中断", ""},
		{"serve -h", "-listen address\n    \t监听的地址 address", ""},
		{"decode 1234567890123456789", "                 ID  时间                      机器号  序号\n1234567890123456789  2020-03-02T19:54:56.824Z     664   277\n", ""},
		{"decode -json 1234567890123456789", `"worker": 664`, ""},
		{"decode x", "", "not an id; write a whole number"},
		{"check", "", "no -dsn; give the application's DSN"},
		{"check " + on, "错误：row-missing：", ""},
		{"check " + on, "没有行：写它的表的 INSERT 都会被拒绝。\n", ""},
		{"check -json " + on, `"message": "It has no row: every INSERT into its tables is refused."`, ""},
		{"migrate " + on + " orders", "", "add the row with leafsql init"},
		{"init " + on, "完成。正在运行的进程", ""},
		{"migrate " + on + " orders", "orders：完成。leaf_alloc 的那一行高于所有主键", ""},
	} {
		var out, errs bytes.Buffer
		run(t.Context(), &screen.Screen{Out: &out, Err: &errs, Texts: chineseTexts}, strings.Fields(c.args))
		if !strings.Contains(out.String(), c.out) || !strings.Contains(errs.String(), c.errs) || c.errs == "" && errs.Len() > 0 {
			t.Errorf("leafsql %s: output = %s%s\nwant %q and the error %q", c.args, &out, &errs, c.out, c.errs)
		}
	}
}
