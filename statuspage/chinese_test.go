package statuspage

import (
	"bytes"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/leafsql/leafsql/driver"
	"github.com/leafsql/leafsql/testutil/chinesetest"
)

// TestChinese: every text of the page has a translation.
func TestChinese(t *testing.T) {
	shown := append(chinesetest.CollectTexts(t, ".", "say", "Sprintf"), "idle", "searching", "waiting", "holding", "closed")
	shown = append(shown, chinesetest.CollectTexts(t, "../cmd/leafsql/internal/server", "Text", "Title", "Of", "writeList")...) // texts of links and titles
	shown = append(shown, chinesetest.CollectTexts(t, "../cmd/leafsql/internal/proxyserver", "Text", "Title", "wrong", "Of")...)
	for _, m := range regexp.MustCompile(`say "([^"]*)"`).FindAllStringSubmatch(body, -1) {
		shown = append(shown, m[1])
	}
	chinesetest.Check(t, inChinese, shown)
	rest := &httptest.ResponseRecorder{Body: bytes.NewBufferString(regexp.MustCompile(`\{\{[^}]*\}\}`).ReplaceAllString(body, ""))}
	if words := strings.ReplaceAll(text(rest), "leafsql", ""); regexp.MustCompile(`[A-Za-z]{2}`).MatchString(words) {
		t.Errorf("texts that are not translated: %s", words)
	}
}

// TestLanguageFollowsTheBrowser: the page is in the one of its languages that the browser prefers.
func TestLanguageFollowsTheBrowser(t *testing.T) {
	for header, want := range map[string]string{
		"": "en", "zh-CN,zh;q=0.9,en;q=0.8": "zh-CN", "zh": "zh-CN", "ZH-Hans-CN": "zh-CN", "fr, zh;q=0.5, en;q=0.3": "zh-CN", "zh, en": "zh-CN",
		"en-US,en;q=0.9,zh-CN;q=0.8": "en", "en, zh": "en", "de": "en", "*": "en", "zh;q=0": "en", "zha": "en", "zh;q=x": "en",
	} {
		r := httptest.NewRequestWithContext(t.Context(), "GET", "/", nil)
		r.Header.Set("Accept-Language", header)
		w := httptest.NewRecorder()
		of(driver.Stats{}).ServeHTTP(w, r)
		if !strings.Contains(w.Body.String(), `<html lang="`+want+`">`) {
			t.Errorf("%q: %.100s, want %s", header, w.Body, want)
		}
	}
	r := httptest.NewRequestWithContext(t.Context(), "GET", "/?id=0", nil)
	r.Header.Set("Accept-Language", "zh-CN")
	w := httptest.NewRecorder()
	of(failing()).ServeHTTP(w, r)
	wants(t, text(w), "3 项需要处理", "tag orders，还剩 690 个 id leafsql: no ids for tag", "表 shop.orders，12 秒前被拒绝", "比注册中心慢 3 毫秒", "持有（holding）", "+ 12 次失败", "不可能是 0")
}
