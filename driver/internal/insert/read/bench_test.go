package read

import (
	"fmt"
	"strings"
	"testing"

	"github.com/leafsql/leafsql/driver/internal/insert"
)

const tenColumns = "INSERT INTO orders (customer, total, created, updated, state, street, city, zip, country, note) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"

// BenchmarkFirstSight: the cost of a new query, a plan and its shape.
func BenchmarkFirstSight(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		p, _, err := Parse(tenColumns, mariaDB, shop)
		if err != nil {
			b.Fatal(err)
		}
		if s := p.Template([]insert.Block{{First: 201, N: 1}}); s.NumInput != 11 {
			b.Fatalf("NumInput = %d, want 11", s.NumInput)
		}
	}
}

// BenchmarkAppendArgs: the cost of each execution after that.
func BenchmarkAppendArgs(b *testing.B) {
	p := mustParse(b, tenColumns)
	args := make([]int64, 10)
	dst := make([]int64, 0, 11)
	id, blocks := idOf(same64), make([]insert.Block, 1)
	b.ReportAllocs()
	for b.Loop() {
		blocks[0] = insert.Block{First: 201, N: 1}
		dst = insert.AppendArgs(dst[:0], args, p.Template(blocks), blocks, id, same64)
	}
}

func literalRows(rows int) string {
	var b strings.Builder
	b.WriteString("INSERT INTO orders (customer, total, created, updated, state, street, city, zip, country, note) VALUES ")
	for i := range rows {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "('customer %d', %d.50, '2026-01-02 03:04:05', NULL, 'open', 'Main street %d', 'Springfield', '%05d', 'US', 'it''s nice')", i, i*7, i, i)
	}
	return b.String()
}

// BenchmarkLiterals: a large query of literals, planned and filled.
func BenchmarkLiterals(b *testing.B) {
	for _, rows := range []int{1, 1000} {
		text := literalRows(rows)
		b.Run(fmt.Sprint(rows), func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				p, _, err := Parse(text, mariaDB, shop)
				if err != nil {
					b.Fatal(err)
				}
				p.Text([]insert.Block{{First: 1234567890123, N: rows}})
			}
		})
	}
}

// BenchmarkNotOurs: a query that writes no configured table.
func BenchmarkNotOurs(b *testing.B) {
	for _, text := range []string{
		"SELECT id, customer, total FROM orders WHERE customer = ? AND created > ? ORDER BY created DESC LIMIT 20",
		strings.Replace(literalRows(1000), "orders", "others", 1),
	} {
		b.Run(fmt.Sprint(len(text)), func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				Parse(text, mariaDB, shop)
			}
		})
	}
}
