package proxy_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/leafsql/leafsql/proxy/proxytest"
)

// trailings may follow a statement in its text: servers remove semicolons and blanks from the end, and allow
// one more semicolon before comments. The last ones are errors on a connection for single statements.
var trailings = []string{
	";", "; ", ";;", "; \v;\n", "; -- x", ";-- x", "; --", "; # x", ";#x", "; /* x */", ";/**/ ", "; /* traceparent='00-ab' */;", ";\n-- x\n# y\n/* z\n */", "; -- x\n;",
	"; -- ; x", "; /* ; ' */", "; /*!99999 x */", "; /*!40101 */", "; -- x\n/*!99999 x */", "; /*+ x */", "; -- x\x00", " -- x;", " -- x\n;", "; \f\r\n\t -- x",
	";; -- x", "; ; /* x */", "; /* x */ ; /* y */", "; --x", "; /* x", "; /*!40101 DO 1 */", "; DO 1", "; -- x\n; DO 1",
}

// TestTrailingCommentsChangeNothing: a comment after the last semicolon does not change the stored rows and the answer, on
// connections for several statements and for single ones.
func TestTrailingCommentsChangeNothing(t *testing.T) {
	runOnServers(t, func(t *testing.T, p *testDatabase) {
		for _, several := range []uint64{0, proxytest.MultiStatements} {
			t.Run(fmt.Sprint("several ", several != 0), func(t *testing.T) {
				o := p.rootOptions()
				o.Capabilities = proxytest.Common | proxytest.LocalFiles | several
				p.newFillTwin(o, filledItems...).Run(t, func(c *proxytest.Client) {
					c.File = fileFrames
					for i, trailing := range trailings {
						for k, text := range []string{
							"INSERT INTO items (name, n) VALUES ('a', {N})", "INSERT INTO items (name, n) VALUES ('a', {N}), ('b', NULL)",
							"INSERT INTO items (name, n) VALUES ('a', {N}) ON DUPLICATE KEY UPDATE name = 'b'", "INSERT INTO items (id, name, n) VALUES (7, 'a', 7) ON DUPLICATE KEY UPDATE name = 'b{N}'",
							"REPLACE INTO items (name, n) VALUES ('a', {N})", "INSERT INTO items (name, n) SELECT name, n + {N} FROM source",
							"LOAD DATA LOCAL INFILE 'rows' IGNORE INTO TABLE items (n, body)", "SELECT {N}",
						} {
							text = strings.ReplaceAll(text, "{N}", strconv.Itoa(1000*i+100*k)) + trailing
							c.Query("DELETE FROM items WHERE id <> 7")
							c.Query(text)
							c.Query("SELECT LAST_INSERT_ID()")
							if s := c.Prepare(text); s.ID != 0 {
								c.Query("DELETE FROM items")
								s.Execute()
								c.Query("SELECT LAST_INSERT_ID(1)")
								s.Close()
							}
						}
					}
					c.Query("SELECT * FROM items ORDER BY id")
				})
			})
		}
	})
}
