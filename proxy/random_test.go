package proxy_test

import (
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/leafsql/leafsql/proxy/proxytest"
)

var (
	sessions  = flag.Int("sessions", 15, "how many random sessions TestRandomSessions plays on each server")
	firstSeed = flag.Uint64("seed", 1, "of the first of them")
)

// TestRandomSessions: a session of random commands gets the bytes of the server. Some commands are pipelined
// and some are written in pieces, with sizes around those of buffers and frames.
func TestRandomSessions(t *testing.T) {
	runOnServers(t, func(t *testing.T, p *testDatabase) {
		o := p.createUser("random", "secret")
		p.dial(p.addr, o).Close() // the first login with MySQL's caching_sha2_password has more packets
		twin := p.newRelayTwin(o, items...)
		for seed := *firstSeed; seed < *firstSeed+uint64(*sessions); seed++ {
			r := rand.New(rand.NewPCG(seed, 0))
			twin.Options.Capabilities = proxytest.Common | proxytest.MultiStatements | proxytest.LocalFiles
			for _, capability := range []uint64{proxytest.DeprecateEOF, proxytest.SessionTrack, proxytest.QueryAttributes, proxytest.FoundRows} {
				if r.IntN(2) == 0 {
					twin.Options.Capabilities |= capability
				}
			}
			inPieces := r.IntN(2) == 0
			if ok := t.Run(fmt.Sprint(seed), func(t *testing.T) {
				twin.Run(t, func(c *proxytest.Client) {
					s := randomSession{Client: c, Rand: rand.New(rand.NewPCG(seed, 1)), options: o}
					c.File = s.file
					if inPieces {
						c.Slow = randomPieces{c.Conn, rand.New(rand.NewPCG(seed, 2))}
					}
					for range 5 + s.IntN(30) {
						s.command()
					}
				})
			}); !ok {
				return
			}
		}
	})
}

// randomPieces writes in pieces of random length.
type randomPieces struct {
	conn io.Writer
	*rand.Rand
}

func (w randomPieces) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0; {
		n := min(len(rest), 1+w.IntN([]int{1, 5, 100, 40_000}[w.IntN(4)])+len(p)/100)
		if _, err := w.conn.Write(rest[:n]); err != nil {
			return len(p) - len(rest), err
		}
		rest = rest[n:]
	}
	return len(p), nil
}

type randomSession struct {
	*proxytest.Client
	*rand.Rand
	options proxytest.Options
	stmts   []randomStmt
}

// A randomStmt is executed either always with a cursor or always without: MySQL does not end the rows of a
// statement that was executed in both ways.
type randomStmt struct {
	*proxytest.Stmt
	cursor bool
}

// size returns a size near a limit: the first byte of a length, a buffer, data that the kernel copies, a frame.
func (s *randomSession) size(most int) int {
	around := []int{251, 32 << 10, 64 << 10, 256 << 10, 1<<24 - 1}
	switch n := s.IntN(40); {
	case n == 0:
		return min(most, s.IntN(5<<20))
	case n < 10:
		return min(most, around[min(n/2, 4)]-50+s.IntN(100))
	}
	return min(most, s.IntN(1000))
}

func (s *randomSession) choose(choices ...string) string { return choices[s.IntN(len(choices))] }

// file returns the answer to LOCAL INFILE.
func (s *randomSession) file(string) (frames [][]byte) {
	for i := range 1 + s.IntN(20) {
		frames = append(frames, fmt.Appendf(nil, "%d\tfile %s\n", 10_000+s.IntN(5000), strings.Repeat("y", s.size(700_000)*(i%3)/2)))
	}
	return frames
}

// text returns a text with the same answer each time for the same rows.
func (s *randomSession) text() string {
	const six = "(SELECT * FROM items ORDER BY id LIMIT 6)"
	switch s.IntN(12) {
	case 0:
		return fmt.Sprintf("SELECT %d, REPEAT('x', %d)", s.IntN(10), s.size(1<<25))
	case 1:
		return fmt.Sprintf("SELECT LENGTH('%s')", strings.Repeat("a", s.size(1<<25)))
	case 2:
		return fmt.Sprintf("SELECT a.n, REPEAT('r', %d) FROM "+six+" a, "+six+" b, "+six+" c ORDER BY a.id, b.id, c.id", s.size(20_000))
	case 3:
		return fmt.Sprintf("INSERT INTO items (name, n, body) VALUES ('r', %d, '%s')", s.IntN(300), strings.Repeat("b", s.size(600_000)))
	case 4:
		return fmt.Sprintf("SELECT id, name, n, at, LENGTH(body), LEFT(body, %d) FROM items ORDER BY id", s.size(70_000))
	case 5:
		return fmt.Sprintf("SELECT REPEAT('1', %d); SELECT %s; SELECT 3", s.size(1<<25), s.choose("missing", "2"))
	case 6:
		return fmt.Sprintf("SELECT 1; CALL two(%d); DO 0; SELECT REPEAT('z', %d)", s.IntN(10), s.size(1<<25))
	case 7:
		return fmt.Sprintf("DELETE FROM items WHERE n %% 7 = %d AND n > 20", s.IntN(7))
	case 8:
		return s.choose("BEGIN", "COMMIT", "ROLLBACK", "SET autocommit = 0", "SET autocommit = 1", "SET sql_mode = 'NO_BACKSLASH_ESCAPES'", "SET sql_mode = DEFAULT")
	}
	return s.choose(texts...)
}

func (s *randomSession) command() {
	switch s.IntN(16) {
	case 0, 1, 2, 3, 4:
		s.Query(s.text())
	case 5, 6:
		s.pipeline(1 + s.IntN(12))
	case 7, 8:
		s.stmts = append(s.stmts, randomStmt{s.Prepare(s.choose("SELECT ?, name, at FROM items WHERE n > ? ORDER BY id", "SELECT REPEAT(?, ?)", "DO ? + ?",
			"INSERT INTO items (name, n) VALUES (LEFT(?, 30), ?)", "UPDATE items SET body = ? WHERE n = ?", "SELECT missing")), s.IntN(2) == 0})
	case 9, 10, 11:
		s.statement()
	case 12:
		s.Query("LOAD DATA LOCAL INFILE 'a' " + s.choose("REPLACE INTO TABLE items (n, @body) SET body = @body, name = LEFT(@body, 10)", "INTO TABLE missing"))
	case 13:
		s.Do(proxytest.InitDB, []byte(s.choose("mysql", "missing", s.options.Database)))
		s.Do(proxytest.InitDB, []byte(s.options.Database))
	case 14:
		s.Do(proxytest.SetOption, []byte{byte(s.IntN(2)), 0})
		s.Do(proxytest.FieldList, []byte("items\x00%"))
	case 15:
		if s.IntN(3) == 0 {
			s.stmts = nil
			s.ChangeUser(s.options.User, s.options.Password, s.options.Database)
		} else if s.IntN(3) == 0 {
			s.stmts = nil
			s.Do(proxytest.ResetConnection, nil)
			s.Do(proxytest.InitDB, []byte(s.options.Database))
		}
	}
}

// pipeline sends commands without waiting for the answers.
func (s *randomSession) pipeline(n int) {
	for range n {
		switch s.IntN(4) {
		case 0:
			s.Send(proxytest.Ping, nil)
		case 1:
			s.Send(proxytest.Prepare, fmt.Appendf(nil, "SELECT ? + %d", s.IntN(10)))
		default:
			s.SendQuery(s.choose(texts...))
		}
	}
	for range n {
		s.Answer()
	}
}

// statement executes or closes a prepared statement.
func (s *randomSession) statement() {
	if len(s.stmts) == 0 {
		return
	}
	i := s.IntN(len(s.stmts))
	stmt := s.stmts[i]
	if stmt.ID == 0 {
		return
	}
	if s.IntN(8) == 0 {
		stmt.Close()
		s.stmts = append(s.stmts[:i], s.stmts[i+1:]...)
		return
	}
	s.Hide("the statement's id in an error")
	defer s.Query("SELECT COUNT(*) FROM items") // so that no SHOW WARNINGS shows it either
	defer s.Hide("")
	first := proxytest.String(strings.Repeat("p", s.size(300_000)))
	if s.IntN(4) == 0 {
		for range 1 + s.IntN(4) {
			stmt.SendLongData(0, strings.Repeat("long", s.size(300_000)/4))
		}
		first = proxytest.Long()
	}
	var flags byte
	if stmt.Fields > 0 && stmt.cursor {
		flags = proxytest.ReadOnlyCursor
	}
	stmt.ExecuteAs(flags, true, first, proxytest.Int(int64(s.IntN(20))))
	for flags != 0 && s.IntN(3) > 0 {
		stmt.Fetch(uint32(1 + s.IntN(100)))
		if s.IntN(5) == 0 {
			s.Query("SELECT 'between'")
		}
	}
	if s.IntN(4) == 0 {
		stmt.Reset()
	}
}
