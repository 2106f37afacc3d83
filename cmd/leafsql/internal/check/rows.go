package check

import (
	"context"
	"math"
	"slices"
	"strconv"

	"github.com/leafsql/leafsql/cmd/leafsql/internal/survey"
	"github.com/leafsql/leafsql/internal/quote"
)

// checkRows compares leaf_alloc's rows with the keys in use.
func (c *checker) checkRows(context.Context) error {
	if !c.CanReadAlloc() {
		return nil
	}
	store := c.Set.Store
	c.checkDescriptions(store)
	for _, tag := range c.Tags {
		here := func(code string, severity Severity, message string) Finding {
			return Finding{Code: code, Severity: severity, Server: store.Label, Tag: tag.Name, Message: message}
		}
		for _, t := range tag.UnknownTables() {
			f := newTableFinding("highest-unknown", Unknown, t)
			f.Message = c.sprintf("Its highest key is unknown: %s.", t.UnknownReason)
			f.Fix = "compare it with the next id of leaf_alloc"
			if !t.DeniedRead {
				f.SQL = []string{"SELECT MAX(" + quote.Name(t.Column) + ") FROM " + t.QuotedName()}
			}
			if t.Integer && !t.Indexed {
				f.Fix = "compare it with the next id of leaf_alloc, or add an index on the key"
				f.SQL = append(f.SQL, "ALTER TABLE "+t.QuotedName()+" ADD INDEX ("+quote.Name(t.Column)+")")
			}
			c.add(f)
		}
		row := tag.Row
		if row == nil {
			if !slices.ContainsFunc(tag.Tables, func(t *survey.Table) bool { return t.Err == nil }) {
				continue // rows of these tables cannot get keys
			}
			if c.unencodable[tag.Name] {
				continue // no row can have this tag
			}
			f := here("row-missing", Error, c.translate("It has no row: every INSERT into its tables is refused."))
			if c.createsRows() {
				f.Severity, f.Message = Note, c.translate("It has no row yet: leafCreate=true adds it at the first INSERT.")
			}
			if start, err := tag.StartID(); err != nil {
				f.Fix = err.Error()
			} else {
				f.SQL = append(f.SQL, c.AddRow(tag, start).SQL)
			}
			c.add(f)
			continue
		}
		c.checkRow(row, tag)
		c.checkStep(row, tag)
		if highest, t := tag.Highest(); tag.IsRowTooLow() {
			f := here("row-too-low", Error, c.sprintf("Its next id is %d, but %s has or had the key %d.", max(row.MaxID, 1), t.Location(), highest))
			if start, err := tag.StartID(); err != nil {
				f.Fix = err.Error()
			} else {
				f.Fix = "restart processes that hold a lower range, so that they fetch another one"
				f.SQL = append(f.SQL, c.RaiseRow(row.Tag, start).SQL)
			}
			c.add(f)
		}
	}
	return nil
}

// checkStep compares a step with the remaining ids of the smallest key column. Near the end of a column the driver
// fetches fewer ids. For BIGINT it does not, but a note would not help.
func (c *checker) checkStep(row *survey.Row, tag *survey.Tag) {
	left := tag.MaxID() - max(row.MaxID, 1) + 1
	if left < 1 || row.Step <= max(left/16, 1) || tag.MaxID() == math.MaxInt64 {
		return
	}
	c.add(Finding{Code: "step-large", Severity: Note, Server: c.Set.Store.Label, Tag: tag.Name,
		Message: c.sprintf("leafsql serve and Java Leaf fetch %d ids at a time, but the smallest key column has only %d left; mysql-leaf fetches fewer.", row.Step, left),
		SQL:     []string{"UPDATE " + c.Set.Store.QuotedName() + " SET step = " + strconv.FormatInt(max(left/100, 1), 10) + " WHERE biz_tag = " + quote.String(row.Tag)}})
}

// createsRows reports whether the driver adds missing rows.
func (c *checker) createsRows() bool {
	return !slices.ContainsFunc(c.Shards, func(s *survey.Shard) bool {
		return !s.Config.Create || s.ID != c.Set.Store.ID || s.Database != c.Set.Store.Database
	})
}

// checkRow checks the values of a row, and that its tag has no other row.
func (c *checker) checkRow(row *survey.Row, tag *survey.Tag) {
	store := c.Set.Store
	where := " WHERE biz_tag = " + quote.String(row.Tag)
	f := Finding{Code: "row-broken", Severity: Error, Server: store.Label, Tag: row.Tag}
	twins := 0
	highest := row.MaxID
	for i := range c.Rows {
		if c.Rows[i].Tag == row.Tag {
			twins++
			highest = max(highest, c.Rows[i].MaxID)
		}
	}
	if twins > 1 {
		f.Message = c.sprintf("It has %d rows.", twins)
		f.Fix = "keep the highest row"
		f.SQL = []string{"DELETE FROM " + store.QuotedName() + where + " AND max_id < " + strconv.FormatInt(highest, 10)}
		c.add(f)
	}
	if row.Step < 1 || row.Step > 1<<31-1 {
		f.Message, f.Fix = c.sprintf("Its step is %d, it must be in 1 … 2147483647.", row.Step), ""
		f.SQL = []string{"UPDATE " + store.QuotedName() + " SET step = " + strconv.Itoa(survey.DefaultStep) + where}
		c.add(f)
	}
	if row.Written == "" || row.MaxID < 0 || row.MaxID == 1<<63-1 {
		written := row.Written
		if written == "" {
			written = "NULL"
		}
		f.Message = c.sprintf("Its max_id is %s.", written)
		f.Fix, f.SQL = "", nil
		if start, err := tag.StartID(); err == nil {
			f.SQL = []string{"UPDATE " + store.QuotedName() + " SET max_id = " + strconv.FormatInt(start, 10) + where}
		} else {
			f.Fix = err.Error()
		}
		c.add(f)
	}
}
