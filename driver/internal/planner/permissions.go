package planner

import (
	"hash/maphash"
	"strconv"
	"time"

	"github.com/leafsql/leafsql/driver/internal/insert"
	"github.com/leafsql/leafsql/driver/internal/lex"
	"github.com/leafsql/leafsql/driver/internal/plancache"
)

// A session with an account other than leafsql's may have fewer privileges than leafsql. Before leafsql
// does anything for a statement of the session that others can notice, such as drawing ids, the server must have
// shown that the session may run the statement. Either the server prepares the statement now, or it has
// prepared a statement of the same shape, for a session of the same account, within the last permissionTime. A shape
// consists of the parts of a statement that decide which privileges it needs. A planner of such a session is guarded.

const (
	permissionTime = time.Minute
	maxPermitted   = 1 << 16  // permissions of all accounts together
	permittedBytes = 64 << 20 // size of these permissions
)

// A permission is the key of a statement shape that the server has permitted to an account.
type permission struct {
	account string
	shape   shape
}

// A shape is the hash of a table and the parts of a statement that decide which privileges it needs on
// the table: its verb, the columns that it writes and its update list, without comments and literals.
// Statements that differ only in their values have the same shape.
type shape uint64

var hashSeed = maphash.MakeSeed()

// Guard makes the planner request the server's permission before leafsql acts on a statement of the
// session. Sessions of one account share permissions; with an account of "" the session shares no permissions.
func (p *Planner) Guard(account string) {
	s := p.shared
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.permitted == nil {
		s.permitted = plancache.New[permission, time.Time](maxPermitted, permittedBytes)
	}
	p.Permitted, p.account = s.permitted, account
	if p.Unshared = account == ""; p.Unshared {
		s.unshared++
		p.account = "\x00" + strconv.FormatUint(s.unshared, 10) // no server has an account with this name
	}
}

// shapeOf returns the shape of a filled or staged statement.
func shapeOf(in *insert.Insert, settings insert.Settings) shape {
	var room [256]byte // for most statements
	parts := append(append(append(append(room[:0], in.Table.Name.DB...), 0), in.Table.Name.Table...), 0)
	for _, text := range []string{in.Written, in.Updates} {
		s := settings.Scanner(text)
		for t := s.Next(); t.Kind != lex.EOF && t.Kind != lex.Bad; t = s.Next() {
			switch word := text[t.Pos:t.End]; {
			case t.Kind == lex.Number, t.Kind == lex.String, t.Kind == lex.HexString, t.Kind == lex.BitString, t.Kind == lex.Param:
			case t.Kind == '-', t.Kind == '+':
			case t.Kind == lex.Word && (lex.Is(word, "null") || lex.Is(word, "true") || lex.Is(word, "false") || lex.Is(word, "default")):
			default:
				parts = append(append(parts, word...), 0)
			}
		}
	}
	return shape(maphash.Bytes(hashSeed, parts))
}
