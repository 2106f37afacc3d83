package driver

import (
	"database/sql/driver"

	"github.com/go-sql-driver/mysql"

	"github.com/leafsql/leafsql/driver/internal/insert"
)

var _ mysql.Result = (*result)(nil)

// result is the inner driver's with the ids that leafsql gave. It stays a
// mysql.Result, whose AllLastInsertIds programs read for multi-statement
// texts.
type result struct {
	driver.Result
	id  int64
	all []int64 // nil: one statement, whose id is id
}

func (r *result) LastInsertId() (int64, error) { return r.id, nil }

func (r *result) AllLastInsertIds() []int64 {
	if r.all == nil {
		return []int64{r.id}
	}
	return append([]int64(nil), r.all...)
}

func (r *result) AllRowsAffected() []int64 {
	if m, ok := r.Result.(mysql.Result); ok {
		return m.AllRowsAffected()
	}
	n, _ := r.RowsAffected() // an error shows in RowsAffected, which passes through
	return []int64{n}
}

// verdict is the LastInsertId of one executed INSERT that drew ids. ask says
// that only SELECT LAST_INSERT_ID() on the same connection knows it: a trigger
// set the OK packet's to 0.
func verdict(in *insert.Insert, f insert.Fill, affected, server int64, foundRows bool) (id int64, ask bool) {
	every := affected == int64(in.Rows)
	switch {
	case f.N == 0:
		return server, false
	case in.Select != nil:
		return selectVerdict(in, f, affected, foundRows), false
	case in.Upsert && in.UpsertMark && in.Mark:
		return upsertVerdict(in, f, affected, server, every)
	case in.Upsert && in.Rows == 1:
		// Without our mark an affected count of 1 says "inserted", except
		// under clientFoundRows, where an unchanged row counts 1 as well. A
		// mark of the user's own says which row was updated.
		if in.UserMark && server != 0 {
			return server, false
		}
		if affected == 1 && (!foundRows || in.UserMark) {
			return f.First, false
		}
		return 0, false
	case in.Upsert:
		return 0, false
	case in.Ignore && !every:
		return 0, false
	}
	return f.First, false
}

// upsertVerdict reads what the marks left: each row that was updated or left
// alone put its own key into LAST_INSERT_ID(), after the first filled row had
// put the first id there. So the first id is still there only if no row from
// that one on was a duplicate.
func upsertVerdict(in *insert.Insert, f insert.Fill, affected, server int64, every bool) (id int64, ask bool) {
	switch {
	case server == 0 && affected > 0:
		return 0, true
	case in.Rows == 1:
		return server, false
	case server == f.First && (!in.Ignore || every):
		return f.First, false
	}
	return 0, false
}
