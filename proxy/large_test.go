package proxy_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/leafsql/leafsql/proxy/proxytest"
)

// frame is the longest payload of one frame: a payload with one more byte continues in a second frame.
const frame = 1<<24 - 1

// TestLargeRowsAreRelayed: rows with a payload that ends right before, at and after the end of a frame are the server's, even
// if the second frame, or the row itself, begins like an end of rows or an error.
func TestLargeRowsAreRelayed(t *testing.T) {
	runOnServers(t, func(t *testing.T, p *testDatabase) {
		for way, capability := range map[string]uint64{"EOF": 0, "no EOF": proxytest.DeprecateEOF} {
			t.Run(way, func(t *testing.T) {
				o := p.rootOptions()
				o.Capabilities = proxytest.Common | capability
				p.newRelayTwin(o).Run(t, func(c *proxytest.Client) {
					c.Query(fmt.Sprintf("SELECT REPEAT(x'FE', %d), 'next' UNION ALL SELECT 'a', 'b'", frame-4-5-1)) // its last frame is one byte shorter than a full one
					c.Query(fmt.Sprintf("SELECT REPEAT(x'FE', %d), 'next' UNION ALL SELECT 'a', 'b'", frame-4-5))   // an empty frame follows
					c.Query(fmt.Sprintf("SELECT REPEAT(x'FE', %d) UNION ALL SELECT 'a'", frame))                    // its second frame has four bytes and begins with 0xFE
					c.Query(fmt.Sprintf("SELECT REPEAT(x'FE', %d) UNION ALL SELECT 'a'", frame+1))                  // the row begins with 0xFE, the length of its value, and so does its second frame
					c.Query(fmt.Sprintf("SELECT 'a', REPEAT(x'FF', %d) UNION ALL SELECT 'a', 'b'", frame-3))        // a second frame of three bytes, the first 0xFF
					c.Query(fmt.Sprintf("SELECT 'a', REPEAT(x'00', %d); ", frame-4))
					c.Prepare(fmt.Sprintf("SELECT REPEAT(x'FE', %d)", frame)).Execute()
					c.Query("SELECT 'goes on'")
				})
			})
		}
	})
}

// TestLargeCommandsReachTheServer: commands with a payload that ends right before, at and after the end of a frame reach the
// server, and the numbers of the answers follow theirs.
func TestLargeCommandsReachTheServer(t *testing.T) {
	runOnServers(t, func(t *testing.T, p *testDatabase) {
		p.newRelayTwin(p.rootOptions(), items...).Run(t, func(c *proxytest.Client) {
			const before, behind = "SELECT LENGTH('", "')"
			for _, k := range []int{-1, 0, 1} { // offset of the payload's length, with the command's byte
				c.Query(before + strings.Repeat("a", frame+k-1-len(before)-len(behind)) + behind)
			}
			c.Query("SELECT 1 FROM missing -- " + strings.Repeat("b", frame))
			c.Query("SELECT 'goes on'")
			s := c.Prepare("SELECT LENGTH(?), ?")
			s.Execute(proxytest.String(strings.Repeat("c", frame)), proxytest.Int(1))
			s.SendLongData(0, strings.Repeat("d", frame))
			s.SendLongData(0, "e")
			s.Execute(proxytest.Long(), proxytest.Int(2))
			in := c.Prepare("INSERT INTO items (n, body) VALUES (?, ?)")
			in.SendLongData(1, strings.Repeat("\xFF", frame-7)) // with the command and the ids of statement and parameter: one full frame and an empty one
			in.Execute(proxytest.Int(50), proxytest.Long())
			c.Query("SELECT LENGTH(body), CRC32(body) FROM items WHERE n = 50")
		})
	})
}
