package statuspage

import (
	"fmt"
	"html"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/leafsql/leafsql/driver"
	"github.com/leafsql/leafsql/testutil/chromiumtest"
)

// misplaced is a script that lists what does not fit: parts that are wider than their section, and names and numbers that are
// broken although their lines have room.
const misplaced = `<pre></pre><script>
const found = [], short = e => [...e.textContent.trim()].length <= 16
const lines = e => { const r = document.createRange(); r.selectNodeContents(e); return r.getBoundingClientRect().height / parseFloat(getComputedStyle(e).lineHeight) }
for (const e of document.querySelectorAll('html, section')) if (e.scrollWidth > e.clientWidth) found.push('wide: ' + e.textContent.trim().slice(0, 40) + ' by ' + (e.scrollWidth - e.clientWidth))
for (const e of document.querySelectorAll('.figures b, tbody th, td.n')) if (short(e) && lines(e) >= 1.8) found.push('broken: ' + e.textContent)
for (const e of document.querySelectorAll('td.n')) if (innerWidth < 1101 && e.offsetHeight > 40) found.push('label above number: ' + e.dataset.name + e.textContent)
document.querySelector('pre').textContent = JSON.stringify(found)
</script>`

// TestPageFitsWindows: in windows of each width no section has to be scrolled sideways, and short names and numbers are on one
// line.
func TestPageFitsWindows(t *testing.T) {
	for name, of := range map[string]func() driver.Stats{"shop": shop, "failing": failing, "many": many, "long": long} {
		inner := page(t, of)
		outer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			seen := httptest.NewRecorder()
			r.Header.Del("Accept-Encoding")
			inner.Config.Handler.ServeHTTP(seen, r)
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			fmt.Fprint(w, strings.Replace(seen.Body.String(), "</body>", misplaced+"</body>", 1))
		}))
		t.Cleanup(outer.Close)
		for _, width := range []int{320, 390, 1101, 1280} {
			if name == "long" && width == 1101 { // with ids of 19 digits, the table of tags needs 1,270 px
				continue
			}
			for _, language := range []string{"en", "zh-CN"} {
				if name != "long" && language != "en" { // the texts of long pages differ most
					continue
				}
				t.Run(fmt.Sprintf("%s/%d px/%s", name, width, language), func(t *testing.T) {
					t.Parallel()
					seen := chromiumtest.OpenPage(t, outer.URL, chromiumtest.Window{Width: width, Language: language})
					keep(t, fmt.Sprintf("fit-%s-%d-%s", name, width, language), seen.PNG)
					m := regexp.MustCompile(`<pre>(.*?)</pre>`).FindStringSubmatch(seen.DOM)
					if m == nil || m[1] != "[]" {
						t.Errorf("misplaced = %.1500s, want []", html.UnescapeString(strings.Join(m, "")))
					}
				})
			}
		}
	}
}
