//go:build unix

package leaftest

import (
	"database/sql"
	"testing"
	"time"

	_ "github.com/go-sql-driver/mysql"

	"github.com/leafsql/leafsql/testutil/mysqltest"
)

const table = "CREATE TABLE leaf_alloc (biz_tag VARCHAR(128) PRIMARY KEY, max_id BIGINT NOT NULL, step INT NOT NULL, description VARCHAR(256), update_time TIMESTAMP)"

func TestSegmentsMoveTheRow(t *testing.T) {
	db, err := sql.Open("mysql", mysqltest.Database(t))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, text := range []string{table, "INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES ('orders', 0, 10)"} {
		if _, err := db.Exec(text); err != nil {
			t.Fatal(err)
		}
	}
	row := func(want int64) {
		t.Helper()
		var maxID int64
		if err := db.QueryRow("SELECT max_id FROM leaf_alloc").Scan(&maxID); err != nil || maxID != want {
			t.Errorf("max_id is %d, %v; want %d", maxID, err, want)
		}
	}
	at := time.Unix(0, 0)
	s := Segments{DB: db, Now: func() time.Time { return at }}
	draw := func(want int64) {
		t.Helper()
		if got, err := s.Next(t.Context(), "orders"); err != nil || got != want {
			t.Fatalf("the id is %d, %v; want %d", got, err, want)
		}
	}
	for id := range int64(2) { // 0 is the first id
		draw(id)
	}
	row(10)
	draw(2) // a tenth is used
	row(20)
	for id := int64(3); id < 13; id++ {
		draw(id)
	}
	row(40) // the third range is twice as long

	other := Segments{DB: db}
	if id, err := other.Next(t.Context(), "orders"); err != nil || id != 40 {
		t.Errorf("the first id of another Leaf is %d, %v; want 40", id, err)
	}
	for id := int64(13); id < 20; id++ {
		draw(id)
	}
	at = at.Add(2 * duration)
	for id := int64(20); id <= 23; id++ {
		draw(id)
	}
	row(60) // the other process has moved it to 50; the next range is half as long as the one of 20
	if _, err := s.Next(t.Context(), "unknown"); err == nil {
		t.Error("Next() of a tag without a row: error = nil, want one")
	}
}
