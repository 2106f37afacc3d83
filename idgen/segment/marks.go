package segment

import (
	"context"
	"database/sql"
	"unicode/utf8"

	"github.com/leafsql/leafsql/idgen/segment/internal/tagrow"
)

// Marks is what the descriptions of a table's rows show, and what those of new rows need. Tags are in their order.
type Marks struct {
	New   string // the mark of a row that is added on this server, for the end of its description; "" if rows get none
	Lossy bool   // the server may lack rows, as after a fail-over: a new row begins higher by [Margin]

	Broken   []*RowError // of rows that give no ids: one store's of several before version 0.2, or with a mark that cannot be read
	Unmarked []string    // tags of rows whose next fetch writes their first mark
	Full     []string    // tags of rows whose description leaves no room for one
}

// Marks reads the descriptions of all rows. It changes nothing. The table may be missing, or without a column description that
// this user may read: then there are no rows.
func (s *AllocStore) Marks(ctx context.Context) (m Marks, err error) {
	err = s.rows.Retry(ctx, func(c *sql.Conn) error {
		m.New, m.Lossy, err = s.newMark(ctx, c)
		if n, _ := tagrow.ServerError(err); noDescription(n) { // or no right to lock rows
			return nil
		}
		return err
	})
	if err != nil {
		return m, s.rows.Failed("read", err)
	}
	err = s.each(ctx, "biz_tag, COALESCE(description, '')", func(scan func(...any) error) error {
		var tag, description string
		err := scan(&tag, &description)
		text, mark, ok := tagrow.ParseMark(description)
		var broken *tagrow.Error
		place, stores, several := tagrow.StoreOf(description)
		switch {
		case several:
			broken = oneOfSeveral(place, stores)
		case !ok:
			broken = s.unreadable(tag, text, description)
		case mark != (tagrow.Mark{}):
		case utf8.RuneCountInString(text) > tagrow.MaxText:
			m.Full = append(m.Full, tag)
		default:
			m.Unmarked = append(m.Unmarked, tag)
		}
		if broken != nil {
			m.Broken = append(m.Broken, &RowError{tag, s.rows.Table, broken.Reason, broken.Fix})
		}
		return err
	})
	if n, _ := tagrow.ServerError(err); noDescription(n) || n == tagrow.ErrNoTable {
		return m, nil
	}
	return m, s.rows.Failed("read", err)
}
