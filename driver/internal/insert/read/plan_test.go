package read

import (
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/leafsql/leafsql/driver/internal/insert"
	"github.com/leafsql/leafsql/driver/internal/staged"
)

// Tables of the tests. The database in use is shop.
var tables = map[string]*insert.Table{
	"orders": {Key: "id", Columns: []string{"id", "customer", "total"}, IntegerKey: true},
	"items":  {Key: "item_id", Columns: []string{"order_id", "item_id", "qty"}, IntegerKey: true},
	"codes":  {Key: "code", Columns: []string{"code", "v"}},
	"zeros":  {Key: "id", Columns: []string{"id", "v"}, IntegerKey: true, ZeroKey: insert.KeyGiven},
	"hidden": {Key: "id", Columns: []string{"a", "b"}, IntegerKey: true},
	"we`ird": {Key: "k`y", Columns: []string{"k`y", "a b"}, IntegerKey: true},
	"1a":     {Key: "id", Columns: []string{"id", "2b"}, IntegerKey: true},
	"texts":  {Key: "id", Columns: []string{"id", "v"}, UUID: insert.UUIDText},
	"bytes":  {Key: "id", Columns: []string{"id", "v"}, UUID: insert.UUIDBytes},
	"größe":  {Key: "schlüssel", Columns: []string{"schlüssel", "v"}, IntegerKey: true},
	"users":  {Key: "id", Columns: []string{"id", "name", "age"}, IntegerKey: true, HasOtherUnique: true},
	"called": {Key: "id", Columns: []string{"id", "a"}, IntegerKey: true},
}

func init() {
	for name, t := range tables {
		t.Name = insert.TableName{DB: "shop", Table: name}
		if t.UpdatesID, t.Floors = t.IntegerKey, t.UUID == insert.NoUUID; t.Floors {
			t.IDWay = insert.IDInText
		}
	}
}

func lookup(db, name string) (*insert.Table, error) {
	if db != "" && db != "shop" {
		return nil, nil
	}
	return tables[name], nil
}

var (
	mariaDB = insert.Settings{SessionKnown: true, MariaDB: true, Version: 101119}
	shop    = Schema{Table: lookup, Stager: &staged.Judge{Settings: mariaDB}}
)

func mustParse(t testing.TB, text string) *insert.Plan {
	t.Helper()
	p, unknown, err := Parse(text, mariaDB, shop)
	if err != nil || unknown {
		t.Fatalf("Parse(%s): unknown %v, error %v; want a plan", text, unknown, err)
	}
	return p
}

// blocksFor returns blocks that fill every row that may lack a key.
func blocksFor(p *insert.Plan, first int64) []insert.Block {
	fills := make([]insert.Block, len(p.Inserts))
	for i, in := range p.Inserts {
		fills[i] = insert.Block{First: first, N: in.RowsWithoutKey + len(in.ArgKeys)}
		fills[i].UUID = [16]byte{1, 2, 3, 4, 5, 6, 0x70, 7, 0x80, 8, 9, 10, 11, 12, 13, 0xff}
		first += int64(fills[i].N)
	}
	return fills
}

func TestTemplateOrdersArguments(t *testing.T) {
	for _, c := range []struct {
		text     string
		fills    []insert.Block
		args     string
		wantText string
		want     string
	}{
		{"INSERT INTO orders (customer,total) VALUES (?,?),(?,?)", []insert.Block{{First: 201, N: 2, Explicit: nil}}, "a b c d",
			"INSERT INTO orders (customer,total, `id`) VALUES (?,?, ?),(?,?, LAST_INSERT_ID(?)+1)", "a b 201 c d 201"},
		{"INSERT INTO orders (id,customer) VALUES (?,?),(NULL,?),(?,?)", []insert.Block{{First: 201, N: 2, Explicit: []bool{false, true}}}, "n a b 7 c",
			"INSERT INTO orders (id,customer) VALUES (?,?),(LAST_INSERT_ID(?)+?,?),(?,?)", "201 a 201 1 b 7 c"},
		{"INSERT INTO orders (id,customer) VALUES (?,?),(NULL,?),(?,?)", []insert.Block{{First: 201, N: 3, Explicit: nil}}, "n a b n c",
			"INSERT INTO orders (id,customer) VALUES (?,?),(?,?),(LAST_INSERT_ID(?)+?,?)", "201 a 202 b 201 2 c"},
		{"INSERT INTO orders (id,customer) VALUES (?,?),(?,?)", []insert.Block{{First: 201, N: 0, Explicit: []bool{true, true}}}, "7 a 8 b",
			"INSERT INTO orders (id,customer) VALUES (?,?),(?,?)", "7 a 8 b"},
		{"INSERT INTO orders (id,customer) VALUES (?,?),(?,?) ON DUPLICATE KEY UPDATE total=?", []insert.Block{{First: 201, N: 2, Explicit: nil}}, "n a n b c",
			"INSERT INTO orders (id,customer) VALUES (LAST_INSERT_ID(?),?),(?,?) ON DUPLICATE KEY UPDATE total=?, `id` = IF(VALUES(`id`) = orders.`id`, orders.`id`, IF(LAST_INSERT_ID(orders.`id`), orders.`id`, orders.`id`))",
			"201 a 202 b c"},
		{"SELECT ?; INSERT INTO orders SET total=?; INSERT INTO items (item_id,qty) VALUES (?,?);", []insert.Block{{First: 201, N: 1, Explicit: nil}, {First: 301, N: 1, Explicit: []bool{false}}}, "a b n c",
			"SELECT ?; INSERT INTO orders SET total=?, `id` = LAST_INSERT_ID(?); INSERT INTO items (item_id,qty) VALUES (LAST_INSERT_ID(?),?);",
			"a b 201 301 c"},
		{"INSERT INTO orders (id,total) VALUES (?,?); INSERT INTO items (item_id,qty) VALUES (7,?);", []insert.Block{{First: 201, N: 1}, {}}, "n b d",
			"INSERT INTO orders (id,total) VALUES (LAST_INSERT_ID(?),?); INSERT INTO items (item_id,qty) VALUES (7,?);",
			"201 b d"},
		{"INSERT INTO orders (customer,total) SELECT ?,? FROM DUAL WHERE NOT EXISTS (SELECT 1 FROM orders WHERE customer = ?)", []insert.Block{{First: 201, N: 1}}, "a b c",
			"INSERT INTO orders (customer,total, `id`) SELECT ?,?, LAST_INSERT_ID(?) FROM DUAL WHERE NOT EXISTS (SELECT 1 FROM orders WHERE customer = ?)", "a b 201 c"},
	} {
		p := mustParse(t, c.text)
		s := p.Template(c.fills)
		if s.Text != c.wantText {
			t.Errorf("%s\ngot  %s\nwant %s", c.text, s.Text, c.wantText)
		}
		var args, want []any
		for _, a := range strings.Fields(c.args) {
			args = append(args, a)
		}
		for _, a := range strings.Fields(c.want) {
			want = append(want, a)
		}
		got := insert.AppendArgs(nil, args, s, c.fills, idOf(anyText), anyText)
		if len(got) != s.NumInput || len(got) != len(want) {
			t.Errorf("%s\ngot  %v for %d placeholders\nwant %v", c.text, got, s.NumInput, want)
			continue
		}
		for i := range got {
			if got[i] != want[i] {
				t.Errorf("%s\ngot  %v\nwant %v", c.text, got, want)
				break
			}
		}
		if p.Template(c.fills) != s {
			t.Errorf("%s: Template() returned a new template, want the cached one", c.text)
		}
	}
}

// idOf returns an id function for AppendArgs that converts integers.
func idOf[T any](number func(int64) T) func(int, *insert.Block, int) T {
	return func(_ int, b *insert.Block, k int) T { return number(b.First + int64(k)) }
}

func same64(n int64) int64 { return n }

func anyText(id int64) any { return strconv.FormatInt(id, 10) }

// TestBatchAtPlaceholderLimitWorks: a batch that just fits still works.
func TestBatchAtPlaceholderLimitWorks(t *testing.T) {
	for _, c := range []struct {
		columns string
		row     string
		rows    int
		literal bool
	}{
		{"customer", "(?)", 32767, false}, // 65,534
		{"customer", "(?)", 32768, true},  // 65,536
		{"customer", "(?)", 65535, true},
		{"id,customer", "(?,?)", 32767, false}, // the 65,535th is the distance in the marker
		{"customer,id", "(?,?)", 32767, false},
		{"id,customer,total", "(?,?,?)", 21845, true}, // 65,535 of the user's
		{"id,customer", "(?,?),(NULL,?)", 21845, true},
	} {
		text := "INSERT INTO orders (" + c.columns + ") VALUES " + strings.TrimSuffix(strings.Repeat(c.row+",", c.rows), ",")
		p := mustParse(t, text)
		fills := blocksFor(p, 1001)
		s := p.Template(fills)
		if s.Literal != c.literal || s.NumInput > 65535 {
			t.Errorf("%d rows of %s: %d placeholders, literal %v; want at most 65535, literal %v", c.rows, c.row, s.NumInput, s.Literal, c.literal)
		}
		args := make([]int64, p.NumInput)
		got := insert.AppendArgs(nil, args, s, fills, idOf(same64), same64)
		if len(got) != s.NumInput || strings.Count(s.Text, "?") != s.NumInput {
			t.Errorf("%d rows of %s: %d arguments and %d placeholders, want %d of both", c.rows, c.row, len(got), strings.Count(s.Text, "?"), s.NumInput)
		}
		// Put the arguments into the query: every id must be there once.
		ids := map[int64]bool{}
		next := int64(1001)
		for _, id := range got {
			if id >= 1001 && !ids[id] {
				ids[id] = true
			}
		}
		if !c.literal {
			for ; ids[next]; next++ {
			}
			// The last row's id is the marker: first and distance.
			if want := int64(1001 + fills[0].N - 1); next != want {
				t.Errorf("%d rows of %s: next id = %d, want %d", c.rows, c.row, next, want)
			}
		}
	}
}

func TestTemplatesAreBounded(t *testing.T) {
	p := mustParse(t, "INSERT INTO orders (id) VALUES "+strings.TrimSuffix(strings.Repeat("(?),", 100), ","))
	kept := map[*insert.Template]bool{}
	for last := range 100 {
		explicit := make([]bool, 100)
		for i := last + 1; i < 100; i++ {
			explicit[i] = true
		}
		fills := []insert.Block{{First: 1, N: last + 1, Explicit: explicit}}
		s := p.Template(fills)
		if p.Template(fills) == s {
			kept[s] = true
		}
		if want := strings.Repeat("(?),", last) + "(LAST_INSERT_ID(?)+?)"; !strings.Contains(s.Text, want) || s.NumInput != 101 {
			t.Fatalf("template for row %d = %s with %d placeholders, want the mark in that row and 101", last, s.Text, s.NumInput)
		}
	}
	if len(kept) != 16 {
		t.Errorf("%d templates are cached, want %d", len(kept), 16)
	}
}

// TestConnectionsSharePlan: a plan is shared by connections.
func TestConnectionsSharePlan(t *testing.T) {
	p := mustParse(t, "INSERT INTO orders (id) VALUES (?),(?),(?),(NULL),(?)")
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for i := range 500 {
				explicit := []bool{i&1 > 0, i&2 > 0, i&4 > 0, g&1 > 0}
				n := 1
				for _, e := range explicit {
					if !e {
						n++
					}
				}
				fills := []insert.Block{{First: 201, N: n, Explicit: explicit}}
				s := p.Template(fills)
				args := insert.AppendArgs(nil, []int64{1, 2, 3, 4}, s, fills, idOf(same64), same64)
				if len(args) != s.NumInput || strings.Count(s.Text, "?") != s.NumInput {
					t.Errorf("%v: %d arguments for %s, want %d", explicit, len(args), s.Text, s.NumInput)
				}
			}
		})
	}
	wg.Wait()
}
