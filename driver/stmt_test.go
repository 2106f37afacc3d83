package driver_test

import (
	sqldriver "database/sql/driver"
	"strings"
	"testing"
)

// TestRawStatementWithTooFewArguments must be an error, as the inner driver's.
func TestRawStatementWithTooFewArguments(t *testing.T) {
	_, leaf := open(t, "leafTables=t", allocTable, row("t", notByUs, 1000), tableT)
	sc, err := leaf.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer sc.Close()
	sc.Raw(func(dc any) error {
		defer func() {
			if p := recover(); p != nil {
				t.Errorf("panic: %v", p)
			}
		}()
		st, err := dc.(sqldriver.Conn).Prepare("INSERT INTO t (a, b) VALUES (?, ?)")
		if err != nil {
			t.Fatal(err)
		}
		defer st.Close()
		//lint:ignore SA1019 the point
		if _, err := st.Exec([]sqldriver.Value{int64(1)}); err == nil {
			t.Error("accepted")
		}
		return nil
	})
}

// TestPreparedVariantsAreBounded: a batch whose rows have keys or not in every
// mix must not use up the server's prepared statements.
func TestPreparedVariantsAreBounded(t *testing.T) {
	const n = 200
	plain, leaf := open(t, "leafTables=t", allocTable, row("t", notByUs, 1_000_000), tableT)
	st, err := leaf.Prepare("INSERT IGNORE INTO t (id, a) VALUES (?, NULL)" + strings.Repeat(", (?, NULL)", n-1))
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	count := func() (n int) {
		if err := plain.QueryRow("SHOW GLOBAL STATUS LIKE 'Prepared_stmt_count'").Scan(new(string), &n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	before := count()
	for i := range n {
		args := make([]any, n)
		for r := range args {
			if r != i {
				args[r] = 10 + r
			}
		}
		if _, err := st.Exec(args...); err != nil {
			t.Fatal(err)
		}
	}
	if made := count() - before; made > 64 {
		t.Errorf("%d statements stay prepared on the server for one", made)
	}
}
