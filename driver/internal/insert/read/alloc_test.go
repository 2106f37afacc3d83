package read

import (
	"testing"

	"github.com/leafsql/leafsql/driver/internal/insert"
)

func TestParseAndTemplateAllocateLittle(t *testing.T) {
	text := "INSERT INTO orders (customer, total) VALUES ('a', 1), ('b', 2)"
	literal, arguments := mustParse(t, text), mustParse(t, tenColumns)
	thousand := literalRows(1000)
	fills2, fills1 := []insert.Block{{First: 201, N: 2}}, []insert.Block{{First: 201, N: 1}}
	args, dst := make([]int64, 10), make([]int64, 0, 11)
	arguments.Template(fills1)
	for _, c := range []struct {
		what string
		most float64
		f    func()
	}{
		{"a text of none of ours", 1, func() { Parse("SELECT * FROM orders WHERE id = ?", mariaDB, shop) }},
		{"plan and shape of a text", 4, func() { mustParse(t, tenColumns).Template(fills1) }},
		{"plan and text of a thousand rows", 5, func() { mustParse(t, thousand).Text([]insert.Block{{First: 201, N: 1000}}) }},
		{"Text", 1, func() { literal.Text(fills2) }},
		{"a kept Shape", 0, func() { arguments.Template(fills1) }},
		{"AppendArgs", 0, func() {
			insert.AppendArgs(dst, args, arguments.Template(fills1), fills1, idOf(same64), same64)
		}},
	} {
		if got := testing.AllocsPerRun(100, c.f); got > c.most {
			t.Errorf("%s: %v allocations, want at most %v", c.what, got, c.most)
		}
	}
}
