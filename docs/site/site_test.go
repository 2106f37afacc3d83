//go:build site

package site

import (
	"encoding/json"
	"flag"
	"fmt"
	"html"
	"io/fs"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leafsql/leafsql/testutil/chromiumtest"
)

const (
	builtSite  = "../../site"
	repository = "https://github.com/leafsql/leafsql"
)

var (
	base     = flag.String("base", "/", "path under which the site was built")
	pictures = flag.String("pictures", "", "folder in which to save the browser's screenshots")
)

// A sitePage is a page of the site.
type sitePage struct {
	links []string // as a browser resolves them, without entities
	ids   []string
}

// sitePages reads the site that docs/site/build.sh built, by path.
func sitePages(t *testing.T) map[string]sitePage {
	t.Helper()
	all := map[string]sitePage{}
	err := filepath.WalkDir(builtSite, func(file string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(file) != ".html" {
			return err
		}
		text, err := os.ReadFile(file)
		var p sitePage
		for _, m := range regexp.MustCompile(`\s(href|src|id)="([^"]*)"`).FindAllStringSubmatch(string(text), -1) {
			value := html.UnescapeString(m[2])
			if m[1] == "id" {
				p.ids = append(p.ids, value)
			} else {
				p.links = append(p.links, value)
			}
		}
		all[*base+filepath.ToSlash(file[len(builtSite)+1:])] = p
		return err
	})
	if err != nil {
		t.Fatalf("%v; run make site", err)
	}
	if len(all) < 60 {
		t.Fatalf("the site has %d pages, want at least 60", len(all))
	}
	return all
}

// TestSiteLinksExist: every link of the site leads to a page, to a heading of it, or to a file of the repository, and links lead
// to every page.
func TestSiteLinksExist(t *testing.T) {
	all := sitePages(t)
	unlinked := maps.Clone(all)
	delete(unlinked, *base+"404.html")
	for name, p := range all {
		for _, to := range p.links {
			u, err := url.Parse(to)
			if err != nil {
				t.Errorf("%s links to %q, want a URL: %v", name, to, err)
				continue
			}
			if file, ok := strings.CutPrefix(to, repository+"/blob/main/"); ok {
				file, _, _ = strings.Cut(file, "#")
				if _, err := os.Stat(filepath.Join("../..", file)); err != nil || strings.HasSuffix(file, ".md") {
					t.Errorf("%s links to %s, want an existing file that is not a page", name, to)
				}
				continue
			}
			if u.Scheme != "" {
				continue
			}
			target := path.Join(path.Dir(name), u.Path)
			switch {
			case u.Path == "":
				target = name
			case strings.HasPrefix(u.Path, "/"):
				target = u.Path
			}
			if strings.HasSuffix(target, "/") {
				target += "index.html"
			}
			if target != name {
				delete(unlinked, target)
			}
			page, ok := all[target]
			if _, err := os.Stat(filepath.Join(builtSite, strings.TrimPrefix(target, *base))); err != nil {
				t.Errorf("%s links to %s, which does not exist, want an existing page", name, to)
			} else if ok && u.Fragment != "" && !slices.Contains(page.ids, u.Fragment) {
				t.Errorf("%s links to %s, which has no such heading, want an existing heading", name, to)
			}
		}
	}
	for name := range unlinked {
		t.Errorf("no page links to %s, want a link to every page", name)
	}
}

// probe is a page that opens pages of the site in a frame, and shows the result of a function in JSON.
const probe = `<!doctype html><body style="margin:0"><pre></pre><script>
const wait = ms => new Promise(done => setTimeout(done, ms))
async function open(path) {
	document.querySelector('iframe')?.remove()
	const frame = document.createElement('iframe')
	frame.style = 'border:0;width:100vw;height:800px'
	frame.src = path
	document.body.prepend(frame)
	await new Promise(done => frame.onload = done)
	await wait(300)
	return frame.contentDocument
}
async function until(value) {
	for (let i = 0; i < 100; i++) {
		const found = value()
		if (found) return found
		await wait(100)
	}
	throw new Error('nothing appears after 10 s: ' + value)
}
async function overflows(pages, dark) {
	const found = []
	for (const page of pages) {
		const d = await open(page), view = d.defaultView
		if (d.documentElement.classList.contains('dark') !== dark) found.push(page + ': dark is ' + !dark)
		const width = d.documentElement.clientWidth
		if (d.documentElement.scrollWidth > width) found.push(page + ': is ' + d.documentElement.scrollWidth + ' px wide')
		const scrolls = e => e && (view.getComputedStyle(e).overflowX !== 'visible' || scrolls(e.parentElement.closest('.vp-doc *')))
		for (const e of d.querySelectorAll('.vp-doc *, .VPNavBar *, .VPSidebar a, .VPDocAsideOutline a')) {
			const area = e.closest('.vp-doc, .VPNavBar, .VPSidebar, .VPDocAsideOutline').getBoundingClientRect()
			if (e.getBoundingClientRect().right > area.right + 1 && !scrolls(e)) found.push(page + ': outside: ' + e.outerHTML.slice(0, 200))
		}
	}
	return found
}
async function search(page, words) {
	const d = await open(page)
	const button = await until(() => d.querySelector('.VPNavBarSearch button'))
	button.click()
	const input = await until(() => d.querySelector('.VPLocalSearchBox input'))
	input.value = words
	input.dispatchEvent(new Event('input', { bubbles: true }))
	await until(() => d.querySelector('.VPLocalSearchBox .result'))
	return [...d.querySelectorAll('.VPLocalSearchBox .result')].map(r => r.getAttribute('href'))
}
const call = %s
call().catch(String).then(result => { document.querySelector('pre').textContent = JSON.stringify(result) })
</script>`

// runProbe calls a function of the probe in a browser, and reads its result.
func runProbe(t *testing.T, w chromiumtest.Window, result any, function string, args ...any) {
	t.Helper()
	text, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	server := serveSite(t, fmt.Sprintf(probe, "() => "+function+"(..."+string(text)+")"))
	seen := chromiumtest.OpenPage(t, server+"/probe", w)
	if len(seen.Console) > 0 {
		t.Errorf("the browser logged %q, want nothing", seen.Console)
	}
	m := regexp.MustCompile(`<pre>(.*?)</pre>`).FindStringSubmatch(seen.DOM)
	if m == nil || json.Unmarshal([]byte(html.UnescapeString(m[1])), result) != nil {
		t.Fatalf("%s returned %v, want a %T", function, m, result)
	}
}

// serveSite serves the site at its base, and the probe.
func serveSite(t *testing.T, probe string) string {
	mux := http.NewServeMux()
	mux.Handle(*base, http.StripPrefix(strings.TrimSuffix(*base, "/"), http.FileServer(http.Dir(builtSite))))
	mux.HandleFunc("/probe", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		fmt.Fprint(w, probe)
	})
	mux.HandleFunc("/favicon.ico", func(http.ResponseWriter, *http.Request) {})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server.URL
}

// TestSiteFitsWindows: a browser shows each page without an element that leaves its column, in a wide and a narrow window, and in
// the colors that the reader prefers.
func TestSiteFitsWindows(t *testing.T) {
	names := slices.Sorted(maps.Keys(sitePages(t)))
	for _, width := range []int{1280, 390} {
		for _, dark := range []bool{false, true} {
			w := chromiumtest.Window{Width: width, Dark: dark, For: 5 * time.Minute}
			t.Run(fmt.Sprintf("%d px, dark %v", width, dark), func(t *testing.T) {
				var found []string
				runProbe(t, w, &found, "overflows", names, dark)
				for _, what := range found {
					t.Errorf("%s, want a page that fits", what)
				}
				w.For = time.Second
				savePictures(t, w)
			})
		}
	}
}

// savePictures saves screenshots of some pages, if a folder is given.
func savePictures(t *testing.T, w chromiumtest.Window) {
	if *pictures == "" {
		return
	}
	server := serveSite(t, "")
	for _, name := range []string{"index", "faq", "operations", "zh-CN/index", "zh-CN/documentation"} {
		file := fmt.Sprintf("site-%s-%d-dark-%v.png", strings.ReplaceAll(name, "/", "-"), w.Width, w.Dark)
		if err := os.WriteFile(filepath.Join(*pictures, file), chromiumtest.OpenPage(t, server+*base+name+".html", w).PNG, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// TestSiteSearchFindsPages: the search of the site finds pages in both languages.
func TestSiteSearchFindsPages(t *testing.T) {
	for _, c := range []struct{ page, words, want string }{
		{"index.html", "leafStore", "dsn.html#leafstore"},
		{"index.html", "clock set back", "worker-ids.html#a-clock-that-is-set-back"},
		{"zh-CN/index.html", "时钟回拨", "zh-CN/worker-ids.html#时钟回拨"},
	} {
		var found []string
		runProbe(t, chromiumtest.Window{For: time.Minute}, &found, "search", *base+c.page, c.words)
		if !slices.ContainsFunc(found, func(link string) bool { s, _ := url.PathUnescape(link); return s == *base+c.want }) {
			t.Errorf("searching for %q on %s finds %q, want %s among them", c.words, c.page, found, *base+c.want)
		}
	}
}
