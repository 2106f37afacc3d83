package insert

import (
	"testing"
)

var orders = &Table{
	DB: "shop", Name: "orders", Key: "id", Columns: []string{"id", "customer", "total"},
	IntegerKey: true, Mark: true, UpsertMark: true,
}

// lookup knows the tables of the tests.
func lookup(db, name string) (*Table, error) {
	if name == "orders" && (db == "" || db == "shop") {
		return orders, nil
	}
	return nil, nil
}

var mariaDB = Mode{SQLModeKnown: true, VersionKnown: true, MariaDB: true, Version: 101119}

func mustParse(t testing.TB, text string) *Plan {
	t.Helper()
	p, need, err := Parse(text, mariaDB, lookup)
	if err != nil || need != 0 {
		t.Fatalf("%s: need %d, %v", text, need, err)
	}
	return p
}

// fillAll fills every row that may lack a key.
func fillAll(p *Plan, first int64) []Fill {
	fills := make([]Fill, len(p.Inserts))
	for i, in := range p.Inserts {
		fills[i] = Fill{First: first, N: in.Holes + len(in.ArgKeys)}
		first += int64(fills[i].N)
	}
	return fills
}

func TestShapeArguments(t *testing.T) {
	p := mustParse(t, "INSERT INTO orders (id, customer) VALUES (?,?),(NULL,?),(?,?)")
	args := []any{nil, "a", "b", int64(7), "c"}
	fills := []Fill{{First: 201, N: 2, Explicit: []bool{false, true}}}
	s := p.Shape(fills)
	if want := "INSERT INTO orders (id, customer) VALUES (?,?),(LAST_INSERT_ID(?)+?,?),(?,?)"; s.Text != want {
		t.Errorf("text\n%s, want\n%s", s.Text, want)
	}
	got := AppendArgs(nil, args, s, fills, func(id int64) any { return id })
	want := []any{int64(201), "a", int64(201), int64(1), "b", int64(7), "c"}
	if len(got) != s.NumInput || len(got) != len(want) {
		t.Fatalf("arguments %v, want %v (NumInput %d)", got, want, s.NumInput)
	}
	for i := range got {
		if got[i] != want[i] {
			t.Errorf("arguments %v, want %v", got, want)
		}
	}
	if p.Shape(fills) != s {
		t.Error("the shape was not kept")
	}
}
