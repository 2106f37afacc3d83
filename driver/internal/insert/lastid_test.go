package insert

import (
	"testing"
)

// TestResultIDIsIDOfServer tests the table in the comment of ResultID. The block begins at 100; the server's
// results were observed for such statements.
func TestResultIDIsIDOfServer(t *testing.T) {
	var (
		marker = IDPlan{Way: IDInText}
		marked = IDPlan{Way: IDInText, Update: RowUpdate}
		plain  = Insert{Rows: 1, IDPlan: marker}
		three  = Insert{Rows: 3, IDPlan: marker}
		ignore = Insert{Rows: 3, IDPlan: marker, Duplicates: Ignore}
		upsert = Insert{Rows: 1, IDPlan: marked, Duplicates: Update}
		many   = Insert{Rows: 3, IDPlan: marked, Duplicates: Update}
		both   = Insert{Rows: 3, IDPlan: marked, Duplicates: UpdateOrIgnore}
		result = Insert{Rows: 1, Duplicates: Update} // leafLastInsertID=result
		own    = Insert{Rows: 1, Duplicates: Update, IDPlan: IDPlan{Update: UserUpdate}}
		where  = Insert{Rows: 1, IDPlan: marker, Conditional: true}
		uuid   = Insert{Rows: 1, Table: &Table{UUID: UUIDText}}
	)
	for _, tt := range []struct {
		name             string
		in               Insert
		n                int // ids drawn
		affected, server int64
		foundRows        bool
		want             int64
		ask              bool
	}{
		{name: "no id was drawn", in: plain, affected: 1, server: 7, want: 7},
		{name: "one row", in: plain, n: 1, affected: 1, server: 100, want: 100},
		{name: "one row, whose trigger sets the answer's id to 0", in: plain, n: 1, affected: 1, want: 100},
		{name: "three rows", in: three, n: 3, affected: 3, server: 100, want: 100},
		{name: "two of three rows got ids", in: three, n: 2, affected: 3, server: 100, want: 100},
		{name: "REPLACE of a row that was there", in: plain, n: 1, affected: 2, server: 100, want: 100},
		{name: "a UUID", in: uuid, n: 1, affected: 1, want: 0},

		{name: "IGNORE, all stored", in: ignore, n: 3, affected: 3, server: 100, want: 100},
		{name: "IGNORE, one dropped", in: ignore, n: 3, affected: 2, server: 100, want: 0},
		{name: "IGNORE, all dropped", in: ignore, n: 3, server: 100, want: 0},

		{name: "upsert inserts", in: upsert, n: 1, affected: 1, server: 100, want: 100},
		{name: "upsert updates row 7", in: upsert, n: 1, affected: 2, server: 7, want: 7},
		{name: "upsert leaves row 7 as it is", in: upsert, n: 1, server: 7, want: 7},
		{name: "upsert whose trigger sets the answer's id to 0", in: upsert, n: 1, affected: 2, ask: true},
		{name: "upsert of three, all inserted", in: many, n: 3, affected: 3, server: 100, want: 100},
		{name: "upsert of three, the last updated", in: many, n: 3, affected: 4, server: 7, want: 0},
		{name: "upsert IGNORE of three, one dropped", in: both, n: 3, affected: 2, server: 100, want: 0},

		{name: "upsert without a marker inserts", in: result, n: 1, affected: 1, want: 100},
		{name: "upsert without a marker updates", in: result, n: 1, affected: 2, want: 0},
		{name: "upsert without a marker under clientFoundRows", in: result, n: 1, affected: 1, foundRows: true, want: 0},
		{name: "upsert with a marker of the user's own updates row 7", in: own, n: 1, affected: 2, server: 7, want: 7},
		{name: "upsert with a marker of the user's own inserts", in: own, n: 1, affected: 1, want: 100},

		{name: "a select without a table whose WHERE says no", in: where, n: 1, server: 7, want: 7},
		{name: "a select without a table that gives a row", in: where, n: 1, affected: 1, server: 100, want: 100},
	} {
		if tt.in.Table == nil {
			tt.in.Table = new(Table)
		}
		id, ask := tt.in.ResultID(&Block{First: 100, N: tt.n}, tt.affected, tt.server, tt.foundRows)
		if id != tt.want || ask != tt.ask {
			t.Errorf("%s: id %d, query of LAST_INSERT_ID() %t; want %d, %t", tt.name, id, ask, tt.want, tt.ask)
		}
	}
}
