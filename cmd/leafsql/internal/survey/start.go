package survey

import (
	"fmt"

	"github.com/leafsql/leafsql/internal/control"
)

// DefaultStep is the step of rows that are added: the ids of one fetch.
const DefaultStep = 1000

// StartID returns a max_id for the tag's row that is above all keys. For a new row, or a row without any fetch yet, it is
// the highest key + 1. It is higher by control.Margin if processes may hold ranges of the row, or if
// the server also generates keys (AUTO_INCREMENT). StartID fails if the key column is full, if rows of a table cannot get
// keys, if a highest key is unknown, or if the row cannot be used.
func (t *Tag) StartID() (int64, error) {
	if t.Broken != nil {
		return 0, t.Broken
	}
	for _, o := range t.Tables {
		if o.Err != nil {
			return 0, o.Err
		}
	}
	if unknown := t.UnknownTables(); len(unknown) > 0 {
		o := unknown[0]
		way := "run leafsql init -scan, which reads the whole table, or add a row above all keys"
		switch {
		case o.DeniedRead:
			way = "grant this user SELECT on it"
		case !o.Integer:
			way = "add a row above all keys"
		}
		return 0, fmt.Errorf("leafsql: the highest key of %s is unknown: %s; %s", o.Location(), o.UnknownReason, way)
	}
	highest, _ := t.Highest()
	room := t.MaxID()
	if highest >= room-1 {
		return 0, fmt.Errorf("leafsql: tag %s: the highest key is %d, and the highest value of the column is %d; make it BIGINT first", t.Name, highest, room)
	}
	if t.Row != nil && t.Row.MaxID > 1 || t.HasAutoIncrement() {
		highest += control.Margin(room - highest)
	}
	return highest + 1, nil
}

// IsRowTooLow reports whether the tag's next id would not be above all keys.
func (t *Tag) IsRowTooLow() bool {
	highest, _ := t.Highest()
	return t.Row != nil && max(t.Row.MaxID, 1) <= highest // 0 is never issued
}
