// Package inserttest generates queries for tests of package insert.
//
//	g := inserttest.NewGenerator(seed)
//	text := g.Text()
//
// It does not return the expected plans.
package inserttest

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// A Generator generates queries from a grammar: statements that write the table orders (id, customer,
// total) of the database shop in all usual forms, and some that do not write it. It is not safe for
// concurrent use.
type Generator struct{ *rand.Rand }

// NewGenerator returns a generator that returns the same queries for the same seed.
func NewGenerator(seed uint64) Generator {
	return Generator{rand.New(rand.NewPCG(seed, 0))}
}

func (g Generator) one(of ...string) string { return of[g.IntN(len(of))] }

// maybe returns s in one of n cases, and "" otherwise.
func (g Generator) maybe(n int, s string) string {
	if g.IntN(n) == 0 {
		return s
	}
	return ""
}

func (g Generator) list(n int, f func() string) string {
	items := make([]string, n)
	for i := range items {
		items[i] = f()
	}
	return strings.Join(items, g.one(",", ", ", " , ", ",/* , */", ",-- x\n"))
}

func (g Generator) space() string {
	return g.one(" ", " ", " ", " ", "  ", "\t", "\n", "/**/", " /* a */ ", " # b\n", "-- c\n")
}

// Text returns a query of one to three statements.
func (g Generator) Text() string {
	var b strings.Builder
	for i := range 1 + g.IntN(3) {
		if i > 0 {
			b.WriteString(";")
		}
		switch g.IntN(8) {
		case 0:
			b.WriteString(g.one("SELECT 1", "UPDATE orders SET total = 1", "DELETE FROM orders", "SELECT REPLACE('a','b','c')", "USE shop", "USE other", "BEGIN", "SELECT 'INSERT INTO orders VALUES ()'"))
		default:
			b.WriteString(g.Insert())
		}
	}
	return b.String() + g.one("", "", ";", " ;", "")
}

// Insert returns an INSERT or REPLACE without a semicolon.
func (g Generator) Insert() string {
	var b strings.Builder
	b.WriteString(g.one("INSERT", "insert", "REPLACE") + g.space())
	replace := strings.HasPrefix(b.String(), "R")
	if !replace {
		b.WriteString(g.maybe(6, "IGNORE "))
	}
	b.WriteString(g.maybe(2, "INTO "))
	b.WriteString(g.one("orders", "orders", "`orders`", "shop.orders", "`shop` . `orders`", "other", "other.orders") + g.space())
	columns := []string{"id", "customer", "total"}
	g.Shuffle(len(columns), func(i, j int) { columns[i], columns[j] = columns[j], columns[i] })
	columns = columns[:1+g.IntN(3)]
	if g.IntN(6) == 0 {
		b.WriteString("SET ")
		i := 0
		b.WriteString(g.list(len(columns), func() string {
			i++
			return columns[i-1] + g.one("=", " = ", ":=") + g.value(columns[i-1])
		}))
	} else {
		switch g.IntN(6) {
		case 0:
			columns = []string{"id", "customer", "total"}
		case 1:
			columns = nil
			b.WriteString(g.maybe(2, "() "))
		default:
			i := 0
			b.WriteString("(" + g.list(len(columns), func() string {
				i++
				return g.column(columns[i-1])
			}) + ")" + g.space())
		}
		b.WriteString(g.one("VALUES", "values", "VALUE") + g.space())
		b.WriteString(g.list(1+g.IntN(4), func() string {
			i := 0
			return "(" + g.list(len(columns), func() string {
				i++
				return g.value(columns[i-1])
			}) + g.maybe(9, " /* x */ ") + ")"
		}))
	}
	if !replace && g.IntN(4) == 0 {
		b.WriteString(g.space() + "ON DUPLICATE KEY UPDATE " + g.list(1+g.IntN(2), func() string {
			return g.one("total = total + 1", "customer = VALUES(customer)", "id = id", "`id` = orders.id", "id = LAST_INSERT_ID(id)", "total = IF(total > 1, (SELECT MAX(a) FROM x), 2)")
		}))
	}
	return b.String() + g.maybe(5, g.space())
}

func (g Generator) column(name string) string {
	return g.one(name, name, "`"+name+"`", strings.ToUpper(name), "orders."+name)
}

func (g Generator) value(column string) string {
	if column == "id" {
		return g.one("NULL", "DEFAULT", "0", "'0'", "?", "(0)", "- 0", "0.0", "7", "-7", "'7'", "0x0", "b'0'", "FALSE", "1+1", "(SELECT 0)", "id", "@a", "CONCAT('(', ')')", "LAST_INSERT_ID()", "12 -- 2\n", "29--1", "x'4F'")
	}
	return g.one("1", "'a'", "'it''s'", `'a\'b'`, `"x"`, "?", "NULL", "DEFAULT", "(1)", "CONCAT('(', ')')", "(SELECT MAX(a) FROM x WHERE a IN (1, 2))", "'-- '", "'/*'", "1 -- 2\n", "29--1",
		"IF(1, 2, 3)", "@a", "@`b c`", "x'4F'", "N'y'", "_utf8mb4'z'", "LAST_INSERT_ID()", "CASE WHEN 1 THEN 2 ELSE 3 END", fmt.Sprint(g.IntN(100)), "1e3", ".5", "INSERT('a', 1, 1, 'b')")
}
