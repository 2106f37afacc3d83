package proxy_test

import (
	"strings"
	"testing"

	"github.com/leafsql/leafsql/proxy/proxytest"
)

// fileFrames returns the frames of a file of the client.
func fileFrames(name string) [][]byte {
	switch name {
	case "first":
		return [][]byte{[]byte("1	one\n2	two\n")}
	case "rows":
		return [][]byte{[]byte("10\tten\n11\televen\n")}
	case "pieces":
		return [][]byte{[]byte("20\ttw"), []byte("enty\n2"), []byte("1\ttwenty-one\n")}
	case "large":
		return [][]byte{[]byte("30\t"), []byte(strings.Repeat("x", frame)), []byte("\n31\ty\n")}
	case "wrong":
		return [][]byte{[]byte("10\tthere already\n"), []byte("40\tforty\nfour\ttext\n")}
	case "error": // the error with which a client reports that it could not read a file
		return [][]byte{[]byte("50\tfifty\n"), []byte("\xFF\x00\x00#HY000no more")}
	}
	return nil
}

// playFiles loads a client's files into a table, and shows the results: one file, one in pieces, one of several
// frames, none, and one with errors.
func playFiles(c *proxytest.Client, columns, warnings string) {
	c.File = fileFrames
	for _, text := range []string{
		"LOAD DATA LOCAL INFILE 'rows'" + columns,
		"LOAD DATA LOCAL INFILE 'rows'" + columns,
		warnings,
		"LOAD DATA LOCAL INFILE 'pieces'" + columns,
		"LOAD DATA LOCAL INFILE 'large'" + columns,
		"LOAD DATA LOCAL INFILE 'missing'" + columns,
		"LOAD DATA LOCAL INFILE 'wrong' REPLACE" + columns,
		warnings,
		"LOAD DATA LOCAL INFILE 'error'" + columns,
		warnings,
		"LOAD DATA LOCAL INFILE 'rows' INTO TABLE missing",
		"LOAD DATA INFILE '/nowhere'" + columns,
		"SELECT 1; LOAD DATA LOCAL INFILE 'pieces' REPLACE" + columns + "; SELECT 2",
		"SELECT id, n, name, LENGTH(body) FROM items ORDER BY id",
	} {
		c.Query(text)
	}
	c.Prepare("LOAD DATA LOCAL INFILE 'rows'" + columns).Execute()
}

// TestFilesAreRelayed: the server requests a file, and the client sends it, through the proxy.
func TestFilesAreRelayed(t *testing.T) {
	runOnServers(t, func(t *testing.T, p *testDatabase) {
		for way, capabilities := range map[string]uint64{"files": proxytest.LocalFiles, "no files": 0, "no EOF": proxytest.LocalFiles | proxytest.DeprecateEOF} {
			t.Run(way, func(t *testing.T) {
				o := p.rootOptions()
				o.Capabilities = proxytest.Common | proxytest.MultiStatements | capabilities
				p.newRelayTwin(o, items...).Run(t, func(c *proxytest.Client) {
					playFiles(c, " INTO TABLE items (n, @body) SET body = @body, name = LEFT(@body, 10)", "SHOW WARNINGS")
				})
			})
		}
	})
}
