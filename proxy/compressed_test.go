package proxy_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/leafsql/leafsql/proxy/proxytest"
	"github.com/leafsql/leafsql/testutil/netfault"
)

// TestCompressedClientsGetTheServersAnswers: clients with compression get the server's answers. The flag -compressed runs all tests of the
// package with such clients; of files in several frames, MariaDB itself then accepts only the first frame.
func TestCompressedClientsGetTheServersAnswers(t *testing.T) {
	compressed := proxytest.Compressed
	proxytest.Compressed = true
	defer func() { proxytest.Compressed = compressed }()
	for name, test := range map[string]func(t *testing.T){
		"answers": TestAnswersAreRelayed, "pipelined": TestPipelinedCommandsAreAnsweredInOrder, "filled": TestFilledTextsAnswerLikeAutoIncrement,
		"filled by several": TestEachStatementOfATextGetsItsAnswer, "bulk": TestFilledBulkAnswersLikeAutoIncrement, "server hangs up": TestServerHangupReachesClient, "client hangs up": TestClientHangupStopsStatement,
		"shutdown": TestShutdownWaitsForTransactions, "clients that stop": TestClientsThatStopLeaveNothing,
	} {
		t.Run(name, test)
	}
}

// TestCompressedCommandsAreReadInAnyPieces: commands and files are read from compressed frames of any length.
func TestCompressedCommandsAreReadInAnyPieces(t *testing.T) {
	for _, piece := range []int{1, 3, 5, 50, 1000, 1 << 16} {
		t.Run(fmt.Sprint(piece, " bytes"), func(t *testing.T) {
			runOnServers(t, func(t *testing.T, p *testDatabase) {
				o := p.rootOptions()
				o.Capabilities, o.MaxContent = proxytest.Common|proxytest.Compress|proxytest.LocalFiles, piece
				p.newFillTwin(o, filledItems...).Run(t, func(c *proxytest.Client) {
					c.File = fileFrames
					c.Query("INSERT INTO items (name, n) VALUES ('a', 1), ('b', 2)")
					c.Query("SELECT LAST_INSERT_ID(), '" + strings.Repeat("x", min(2*piece, 250)) + "'")
					s := c.Prepare("INSERT INTO items (name, body) VALUES ('c', ?)")
					s.SendLongData(0, strings.Repeat("long", 50))
					s.Execute(proxytest.Long())
					c.Query("LOAD DATA LOCAL INFILE 'pieces' INTO TABLE items (n, body)")
					c.Query("SELECT id, name, n, body FROM items ORDER BY id")
				})
			})
		})
	}
}

// TestCompressionEndsInTheProxy: the connection to the server is not compressed, and the client's is, in both
// directions.
func TestCompressionEndsInTheProxy(t *testing.T) {
	runOnServers(t, func(t *testing.T, p *testDatabase) {
		var sent [3]atomic.Int64 // by direction
		between := netfault.Start(t, p.startProxy())
		between.Filter(func(dir netfault.Direction, chunk []byte) netfault.Verdict {
			sent[dir].Add(int64(len(chunk)))
			return netfault.Pass
		})
		o := p.rootOptions()
		o.Capabilities = proxytest.Common | proxytest.Compress
		c := p.dial(between.Addr(), o)
		if got := c.Query("SHOW SESSION STATUS LIKE 'Compression'").Rows(); len(got) != 1 || got[0][1] != "OFF" {
			t.Errorf("compression of the server's connection = %q, want OFF", got)
		}
		const long = 100_000
		rows := c.Query(fmt.Sprintf("SELECT REPEAT('x', %d), LENGTH('%s')", long, strings.Repeat("y", long))).Rows()
		if want := fmt.Sprint(long); len(rows) != 1 || len(rows[0][0]) != long || rows[0][1] != want {
			t.Errorf("got %d rows, want one with %d bytes and the length of as many", len(rows), long)
		}
		for dir := range sent {
			if n := sent[dir].Load(); n > long/10 {
				t.Errorf("direction %d: %d bytes on the wire for %d, want less than a tenth", dir, n, long)
			}
		}
	})
}
