package survey

import (
	"fmt"
	"math"
)

// Margin is how far above the highest key a row is put from which processes may hold
// ranges, or above which the server still gives numbers itself.
const Margin = 1_000_000

// Step is that of rows that are added: ids of one fetch.
const Step = 1000

// Start is the max_id that puts the tag's row above all keys. A row that is new, or
// that nobody has fetched from, starts right above them; another one, and one of a
// table with AUTO_INCREMENT, a margin further. It is an error where not even half of
// the key column would be left, a table cannot be filled, or a highest key is not known.
func (t *Tag) Start(margin int64) (int64, error) {
	for _, o := range t.Tables {
		if o.Err != nil {
			return 0, o.Err
		}
	}
	if unknown := t.Unknown(); len(unknown) > 0 {
		o := unknown[0]
		way := "leafsql init -scan reads the whole table; or add the row by hand, above all keys"
		switch {
		case o.DeniedRead:
			way = "grant this user SELECT on it"
		case !o.Integer:
			way = "add the row by hand, above all keys"
		}
		return 0, fmt.Errorf("leafsql: the highest key of %s is not known: %s; %s", o.Where(), o.Why, way)
	}
	highest, _ := t.Highest()
	fetched := t.Row != nil && t.Row.MaxID > 1
	if !fetched && !t.AutoIncrement() {
		margin = 0
	}
	room := t.Room()
	if margin > 0 && highest > room/2-margin || highest >= room-1 || highest > math.MaxInt64-1-margin {
		above := ""
		switch {
		case margin > 0 && t.AutoIncrement():
			above = fmt.Sprintf(", the row would begin %d above it, since AUTO_INCREMENT gives keys as well", margin)
		case margin > 0:
			above = fmt.Sprintf(", the row would begin %d above it, since processes may hold ids there", margin)
		}
		return 0, fmt.Errorf("leafsql: tag %s: the highest key is %d%s, and the column ends at %d; make it BIGINT first", t.Name, highest, above, room)
	}
	return highest + 1 + margin, nil
}

// TooLow reports whether the tag's next id would not be above all keys.
func (t *Tag) TooLow() bool {
	highest, _ := t.Highest()
	return t.Row != nil && max(t.Row.MaxID, 1) <= highest // 0 is never issued
}
