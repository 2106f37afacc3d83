package driver

import (
	"database/sql/driver"
	"errors"
	"reflect"
	"testing"

	"github.com/leafsql/leafsql/internal/fill"
)

// TestBulkRowsGetIDsInOrder: each argument is the row's own or an id, and ids follow the order of the rows.
func TestBulkRowsGetIDsInOrder(t *testing.T) {
	s, inner := attached(t, fill.Login{Database: "shop"})
	ids := func(text string, keys ...any) (args []int, got []any, id int64, err error) {
		prepared, err := s.Prepare(t.Context(), s.mustPlan(t, text))
		if err != nil {
			t.Fatal(err)
		}
		b, err := prepared.StartBulk(t.Context(), len(keys), 1<<20, func(row, i int) driver.Value { return clientValue{keys[row]} })
		if err != nil {
			return nil, nil, 0, err
		}
		for range keys {
			for _, arg := range b.Args() {
				if id, ok := b.NextID(arg); ok {
					got = append(got, id)
				} else {
					got = append(got, nil)
				}
			}
		}
		a, err := b.Finish(t.Context(), noopResult{}, nil)
		return b.Args(), got, a.ID, err
	}
	args, got, id, err := ids("INSERT INTO t (a, b) VALUES (?, ?)", nil, nil)
	if want := []any{nil, nil, int64(1), nil, nil, int64(2)}; err != nil || !reflect.DeepEqual(args, []int{0, 1, -1}) || !reflect.DeepEqual(got, want) || id != 1 || inner.last != "SET last_insert_id = 1" {
		t.Errorf("arguments %v, values %v, id %d, error %v, sent %q; want values %v and id 1", args, got, id, err, inner.last, want)
	}
	args, got, id, err = ids("INSERT INTO t (a, id) VALUES (?, ?), (1, NULL)", nil, int64(500), []byte("400"))
	if want := []any{nil, int64(3), int64(4), nil, nil, int64(5), nil, nil, int64(6)}; err != nil || !reflect.DeepEqual(args, []int{0, 1, -1}) || !reflect.DeepEqual(got, want) || id != 3 || inner.last != "SET last_insert_id = 3" {
		t.Errorf("arguments %v, values %v, id %d, error %v, sent %q; want values %v and id 3", args, got, id, err, inner.last, want)
	}
	inner.last = ""
	args, got, id, err = ids("INSERT INTO t (id, a) VALUES (?, ?)", int64(600), int64(700))
	if want := []any{nil, nil, nil, nil}; err != nil || !reflect.DeepEqual(args, []int{0, 1}) || !reflect.DeepEqual(got, want) || id != 1 || inner.last != "" { // the id that the server returned
		t.Errorf("arguments %v, values %v, id %d, error %v, sent %q; want values %v and id 1", args, got, id, err, inner.last, want)
	}
	if _, _, _, err := ids("INSERT INTO t (id, a) VALUES (?, ?)", nil, []byte("seven")); !errors.Is(err, ErrRefused) {
		t.Errorf("argument that is no key: error %v, want a refusal", err)
	}
}
