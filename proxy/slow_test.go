package proxy_test

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leafsql/leafsql/proxy"
	"github.com/leafsql/leafsql/proxy/proxytest"
	"github.com/leafsql/leafsql/testutil/stopwatch"
)

// A byteByByte writes to a connection one byte at a time.
type byteByByte struct{ conn io.Writer }

func (w byteByByte) Write(p []byte) (int, error) {
	for i := range p {
		if _, err := w.conn.Write(p[i : i+1]); err != nil {
			return i, err
		}
	}
	return len(p), nil
}

// TestCommandsByteByByteAreAnswered: commands that arrive byte by byte are answered like others.
func TestCommandsByteByByteAreAnswered(t *testing.T) {
	runOnServers(t, func(t *testing.T, p *testDatabase) {
		o := p.rootOptions()
		o.Capabilities = proxytest.Common | proxytest.LocalFiles
		p.newFillTwin(o, filledItems...).Run(t, func(c *proxytest.Client) {
			c.Slow = byteByByte{c.Conn}
			c.File = fileFrames
			c.Query("INSERT INTO items (name, n) VALUES ('a', 1), ('b', 2)")
			c.Query("SELECT '" + strings.Repeat("x", 1000) + "'")
			s := c.Prepare("INSERT INTO items (name, body) VALUES (?, ?)")
			s.SendLongData(1, "in ")
			s.SendLongData(1, "pieces")
			s.Execute(proxytest.String("c"), proxytest.Long())
			s.Reset()
			s.Close()
			c.Query("LOAD DATA LOCAL INFILE 'pieces' INTO TABLE items (n, body)")
			c.Query("LOAD DATA LOCAL INFILE 'rows' INTO TABLE source (n, name)")
			c.Do(proxytest.InitDB, []byte(p.name))
			c.Do(proxytest.Ping, nil)
			c.Query("SELECT id, name, n, body FROM items ORDER BY id")
		})
	})
}

// TestPipelinedFilledCommandsAreAnsweredInOrder: pipelined commands are answered in their order, including filled ones.
func TestPipelinedFilledCommandsAreAnsweredInOrder(t *testing.T) {
	const commands = 700
	runOnServers(t, func(t *testing.T, p *testDatabase) {
		p.newFillTwin(p.rootOptions(), filledItems...).Run(t, func(c *proxytest.Client) {
			s := c.Prepare("INSERT INTO items (name, n) VALUES (?, ?)")
			for i := range commands {
				switch i % 7 {
				case 0:
					c.Send(proxytest.QueryText, fmt.Appendf(nil, "INSERT INTO items (name, n, body) VALUES ('a', %d, '%s'), ('b', %d, '')", i, strings.Repeat("x", i*10), i+commands))
				case 1:
					c.Send(proxytest.QueryText, fmt.Appendf(nil, "SELECT %d, REPEAT('x', %d)", i, i*100))
				case 2:
					c.Send(proxytest.QueryText, []byte("INSERT INTO items (n) VALUES (0)")) // the key is in use
				case 3:
					s.SendLongData(0, fmt.Sprint("long ", i))
				case 4:
					s.Send(proxytest.Long(), proxytest.Int(int64(i)))
				case 5:
					c.Send(proxytest.QueryText, fmt.Appendf(nil, "INSERT INTO items (name, n) SELECT name, n + %d FROM source", i*1000))
				case 6:
					c.Send(proxytest.Prepare, fmt.Appendf(nil, "INSERT INTO items (n) VALUES (%d), (?)", i))
				}
			}
			for range commands / 7 * 6 { // long data is not answered
				c.Answer()
			}
			c.Query("SELECT id, name, n, LENGTH(body) FROM items ORDER BY id")
		})
	})
}

// TestClientsThatStopLeaveNothing: a client that disconnects in the middle of a command or of an answer leaves no
// connection to the server and no goroutine. An incomplete statement stores no rows.
func TestClientsThatStopLeaveNothing(t *testing.T) {
	frameOf := func(length int, payload string) []byte {
		return append([]byte{byte(length), byte(length >> 8), byte(length >> 16), 0}, payload...)
	}
	const (
		insert = "\x03INSERT INTO items (name) VALUES ('"
		rows   = "SELECT REPEAT('x', 1000) FROM many a, many b, many c, many d, many e, many f, many g"
		ten    = "CREATE TABLE many SELECT 1 a UNION ALL SELECT 2 UNION ALL SELECT 3 UNION ALL SELECT 4 UNION ALL SELECT 5 UNION ALL SELECT 6 UNION ALL SELECT 7 UNION ALL SELECT 8"
	)
	stops := map[string]func(c *proxytest.Client){
		"half a header":       func(c *proxytest.Client) { c.Conn.Write([]byte{100, 0}) },
		"half a command":      func(c *proxytest.Client) { c.Conn.Write(frameOf(100, insert)) },
		"half a long command": func(c *proxytest.Client) { c.Conn.Write(frameOf(10<<20, insert+strings.Repeat("a", 1<<20))) },
		"between frames":      func(c *proxytest.Client) { c.Conn.Write(frameOf(frame, insert+strings.Repeat("a", frame-len(insert)))) },
		"half an execution": func(c *proxytest.Client) {
			s := c.Prepare("INSERT INTO items (name) VALUES (?)")
			c.Conn.Write(frameOf(100, string([]byte{proxytest.Execute, byte(s.ID), byte(s.ID >> 8), 0, 0, 0, 1, 0, 0, 0, 0, 1})))
		},
		"half a login again": func(c *proxytest.Client) { c.Conn.Write(frameOf(50, "\x11root\x00")) },
		"rows": func(c *proxytest.Client) {
			c.Send(proxytest.QueryText, []byte(rows))
			if _, err := io.ReadFull(c.Conn, make([]byte, 100_000)); err != nil {
				t.Error(err)
			}
		},
		"rows unread": func(c *proxytest.Client) { c.Send(proxytest.QueryText, []byte(rows)) },
		"many commands": func(c *proxytest.Client) {
			for range 100 {
				c.Send(proxytest.QueryText, []byte("SELECT REPEAT('x', 100000)"))
			}
		},
		"half a file": func(c *proxytest.Client) {
			c.File = func(string) [][]byte {
				c.Conn.Write(frameOf(100, "1\tone\n"))
				c.Conn.Close()
				return nil
			}
			c.Query("LOAD DATA LOCAL INFILE 'a' INTO TABLE source (n, name)")
		},
		"half a file that is filled": func(c *proxytest.Client) {
			c.File = func(string) [][]byte {
				c.Conn.Write(append(append(frameOf(6, "1\tone\n"), 0, 0, 0, 1)[:10], frameOf(100, "2\ttwo\n")...))
				c.Conn.Close()
				return nil
			}
			c.Query("LOAD DATA LOCAL INFILE 'a' INTO TABLE items (n, name)")
		},
	}
	runOnServers(t, func(t *testing.T, p *testDatabase) {
		p.createTables(true, append(filledItems, ten)...)
		pr, addr := proxytest.Serve(t, p.dsn+"?leafTables=items")
		o := p.rootOptions()
		o.Capabilities = proxytest.Common | proxytest.LocalFiles
		play := func(stop func(c *proxytest.Client), how string) {
			c := p.dial(addr, o)
			c.Query("SELECT 1")
			stop(c)
			c.Conn.Close()
			p.waitDisconnected(how, c)
		}
		warm := p.dial(addr, o)
		warm.Query("INSERT INTO items (name) VALUES ('whole')")
		warm.Close()
		goroutines := func() string {
			stacks := make([]byte, 1<<20)
			var all []string
			for _, g := range strings.Split(string(stacks[:runtime.Stack(stacks, true)]), "\n\n") {
				if strings.Contains(g, "created by github.com/leafsql/leafsql/proxy.") {
					all = append(all, strings.TrimSpace(g[strings.LastIndex(g, "created by"):]))
				}
			}
			slices.Sort(all)
			return strings.Join(all, "\n")
		}
		p.waitDisconnected("warm", warm)
		before := goroutines()
		for how, stop := range stops {
			play(stop, how)
		}
		took := stopwatch.Start(t)
		for goroutines() != before {
			if took() > proxytest.Timeout {
				t.Fatalf("goroutines =\n%s\nwant those before:\n%s", goroutines(), before)
			}
			time.Sleep(5 * time.Millisecond)
		}
		if ends := pr.Stats().ServerEnds; ends != 0 {
			t.Errorf("connections that count as ended by the server = %d, want 0", ends)
		}
		if stored := p.queryValue("SELECT CONCAT((SELECT GROUP_CONCAT(name) FROM items), ' ', (SELECT COUNT(*) FROM source))"); stored != "whole 3" {
			t.Errorf("stored rows = %q, want \"whole 3\"", stored)
		}
	})
}

// heapBytes returns the bytes in use.
func heapBytes() int {
	for range 3 { // pools are emptied by the second one
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc + m.StackInuse)
}

// TestSlowReaderKeepsOneBuffer: for a client that does not read its rows, the proxy keeps at most one buffer of them, with
// small rows and large ones.
func TestSlowReaderKeepsOneBuffer(t *testing.T) {
	const most = 2 << 20 // above its previous size
	runOnServers(t, func(t *testing.T, p *testDatabase) {
		p.createTables(true, "CREATE TABLE ten SELECT 1 a UNION SELECT 2 UNION SELECT 3 UNION SELECT 4 UNION SELECT 5 UNION SELECT 6 UNION SELECT 7 UNION SELECT 8 UNION SELECT 9 UNION SELECT 10")
		addr := proxytest.Start(t, p.dsn+"?leafTables=none")
		for rows, text := range map[string]string{
			"small": "SELECT REPEAT('x', 1000) FROM ten a, ten b, ten c, ten d, ten e",
			"large": "SELECT REPEAT('x', 10000000) FROM ten",
		} {
			t.Run(rows, func(t *testing.T) {
				c := p.dial(addr, p.rootOptions())
				c.Query("SELECT 1")
				part := make([]byte, 5<<20)
				before := heapBytes()
				c.Send(proxytest.QueryText, []byte(text))
				xs, all, top := 0, 0, 0
				for all < 100_000_000 {
					if top = max(top, heapBytes()-before); top > most {
						t.Fatalf("memory after %d bytes of rows = %d bytes, want at most %d", all, top, most)
					}
					n, err := io.ReadFull(c.Conn, part[:min(len(part), 100_000_000-all)])
					if err != nil {
						t.Fatal(err)
					}
					all += n
					xs += bytes.Count(part[:n], []byte("x"))
				}
				t.Logf("at most %d bytes are kept", top)
				if xs < 99_000_000 {
					t.Errorf("bytes of rows = %d of 100,000,000, want at least 99,000,000", xs)
				}
			})
		}
	})
}

// TestIdleConnectionsTakeLittleMemory: an idle connection takes little memory, also after filled statements and large ones.
func TestIdleConnectionsTakeLittleMemory(t *testing.T) {
	const most = 20 << 10 // less than a buffer that is kept, and more than the race detector adds
	runOnServers(t, func(t *testing.T, p *testDatabase) {
		p.createTables(true, filledItems...)
		addr := p.startProxy()
		idle := func(n int) (conns []net.Conn) { // without the memory of the clients
			for range n {
				c, err := proxytest.Dial(addr, p.rootOptions())
				if err != nil {
					t.Fatal(err)
				}
				c.Query("INSERT INTO items (name) VALUES ('a'), ('b')")
				c.Query("INSERT INTO items (name, body) VALUES ('a', '" + strings.Repeat("x", 100_000) + "')")
				c.Query("SELECT REPEAT('x', 100000)")
				s := c.Prepare("INSERT INTO items (name) VALUES (?)")
				if ok := s.Execute(proxytest.String("c")).OK(); ok.Affected != 1 {
					t.Fatalf("Execute() = %+v, want 1 affected row", ok)
				}
				s.Close()
				conns = append(conns, c.Socket())
			}
			return conns
		}
		first := idle(10)
		before := heapBytes()
		const connections = 50
		second := idle(connections)
		each := (heapBytes() - before) / connections
		t.Logf("%d bytes each", each)
		if each > most {
			t.Errorf("memory of an idle connection = %d bytes, want at most %d", each, most)
		}
		for _, conn := range append(first, second...) {
			conn.Close()
		}
	})
}

// TestManyTextsTakeLimitedMemory: texts that are all different, like those of programs that write values into them, do not fill
// the memory.
func TestManyTextsTakeLimitedMemory(t *testing.T) {
	const (
		texts = 4_500 // more than the number of cached plans
		most  = 2 << 20
	)
	runOnServers(t, func(t *testing.T, p *testDatabase) {
		p.createTables(true, "CREATE TABLE items (id BIGINT NOT NULL PRIMARY KEY, n INT, body VARCHAR(2000))")
		c := p.dial(p.startProxy(), p.rootOptions())
		n, body := 0, strings.Repeat("x", 1000)
		insert := func() int {
			for range texts / 500 {
				c.Query("BEGIN")
				for range 500 {
					n++
					c.Send(proxytest.QueryText, fmt.Appendf(nil, "INSERT INTO items (n, body) VALUES (%d, '%s')", n, body))
				}
				for range 500 {
					c.Answer()
				}
				c.Query("COMMIT")
				c.Answers = nil
			}
			return heapBytes()
		}
		before := insert()
		if after := insert(); after-before > most {
			t.Errorf("additional memory for %d texts = %d bytes, want at most %d", texts, after-before, most)
		}
		p.waitForValue("SELECT COUNT(DISTINCT id) FROM items", fmt.Sprint(2*texts))
	})
}

// beginCommand returns the first bytes of a long command: the header of a full frame, and some of its payload.
func beginCommand(n int) []byte {
	return append([]byte{0xFF, 0xFF, 0xFF, 0, proxytest.QueryText}, bytes.Repeat([]byte(" "), n)...)
}

// TestAnnouncedBytesTakeNoMemory: the header of a long command takes no memory for data that does not arrive.
func TestAnnouncedBytesTakeNoMemory(t *testing.T) {
	const (
		clients = 40
		most    = 200 << 10 // for each connection
	)
	runOnServers(t, func(t *testing.T, p *testDatabase) {
		addr := proxytest.Start(t, p.dsn+"?leafTables=none")
		var all []*proxytest.Client
		for range clients {
			all = append(all, p.dial(addr, p.rootOptions()))
		}
		before := heapBytes()
		for _, c := range all {
			if _, err := c.Conn.Write(beginCommand(0)); err != nil {
				t.Fatal(err)
			}
		}
		p.dial(addr, p.rootOptions()).Query("SELECT 1") // by then the proxy has read them, or will soon
		time.Sleep(100 * time.Millisecond)
		if got := (heapBytes() - before) / clients; got > most {
			t.Errorf("memory of each client = %d bytes, want at most %d", got, most)
		}
	})
}

// TestReadMemoryIsLimited: the long commands of all clients together stay within the proxy's limit. A client above the
// limit gets an error, short commands are served as before, and the memory is free again when the commands are
// done.
func TestReadMemoryIsLimited(t *testing.T) {
	const memory = 8 << 20
	runOnServers(t, func(t *testing.T, p *testDatabase) {
		p.createTables(true, filledItems...)
		addr := p.startProxy(func(cfg *proxy.Config) { cfg.ReadMemory = memory })
		long := "INSERT INTO items (n, body) VALUES (%d, '" + strings.Repeat("x", memory/4) + "')"
		served := func(c *proxytest.Client, n int) {
			t.Helper()
			if number, text := c.Query(fmt.Sprintf(long, n)).Err(); number != 0 {
				t.Fatalf("a long command: error %d %s, want none", number, text)
			}
		}
		idle := p.dial(addr, p.rootOptions())
		served(idle, 1)
		before := heapBytes()
		var all []*proxytest.Client
		denied := 0
		for range 32 {
			c := p.dial(addr, p.rootOptions())
			all = append(all, c)
			c.Conn.Write(beginCommand(1 << 20)) // an error shows below
		}
		took := stopwatch.Start(t)
		for _, c := range all[1:] {
			c.Conn.SetReadDeadline(time.Now().Add(500 * time.Millisecond))
			b := make([]byte, 7)
			if n, err := io.ReadFull(c.Conn, b); n == 7 && b[5] == 0x81 && b[6] == 0x04 {
				denied++
			} else if err == nil {
				t.Errorf("answer to a long command = %q, want error 1153", b)
			}
		}
		if denied < 16 {
			t.Errorf("%d of %d clients got error 1153 within %v", denied, len(all), took())
		}
		if got := heapBytes() - before; got > memory+4<<20 {
			t.Errorf("memory in use = %d bytes, want at most %d", got, memory)
		}
		if number, text := idle.Query("INSERT INTO items (n) VALUES (2)").Err(); number != 0 {
			t.Errorf("short command: error %d %s, want none", number, text)
		}
		s := idle.Prepare("INSERT INTO items (n, body) VALUES (?, ?)")
		for range 2 * memory >> 20 {
			s.SendLongData(1, strings.Repeat("x", 1<<20))
		}
		if number, text := s.Execute(proxytest.Int(3), proxytest.Long()).Err(); number != 1153 {
			t.Errorf("long value: error %d %s, want 1153", number, text)
		}
		for _, c := range all {
			c.Conn.Close()
			p.waitDisconnected("long command", c)
		}
		for i := range 4 {
			served(idle, 10+i)
			served(p.dial(addr, p.rootOptions()), 20+i)
			s.SendLongData(1, strings.Repeat("x", memory/4))
			if number, text := s.Execute(proxytest.Int(int64(30+i)), proxytest.Long()).Err(); number != 0 {
				t.Errorf("long value afterwards: error %d %s, want none", number, text)
			}
		}
	})
}

// TestLongTextsAreNotKept: the limit for cached plans includes their size, which is far larger than the text if
// it has many rows.
func TestLongTextsAreNotKept(t *testing.T) {
	const (
		sent = 12 << 20 // bytes of texts
		most = 10 << 20
	)
	runOnServers(t, func(t *testing.T, p *testDatabase) {
		p.createTables(true, filledItems...)
		c := p.dial(p.startProxy(), p.rootOptions())
		c.Query("INSERT INTO items (n) VALUES (0)")
		for _, rows := range []int{500, 18_000} {
			t.Run(fmt.Sprint(rows, " rows"), func(t *testing.T) {
				text := "INSERT INTO items (id, n) VALUES (?, 1)" + strings.Repeat(",(?,1)", rows-1) + " -- "
				before := heapBytes()
				for n := range sent / len(text) / 4 {
					if number, said := c.Query(text + fmt.Sprint(n)).Err(); number != 1064 {
						t.Fatalf("error %d %s, want 1064", number, said)
					}
					c.Answers = nil
				}
				if got := heapBytes() - before; got > most {
					t.Errorf("%d bytes more are in use, want at most %d", got, most)
				} else {
					t.Logf("%d bytes more are in use", got)
				}
			})
		}
	})
}
