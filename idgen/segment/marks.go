package segment

import (
	"context"
	"database/sql"
	"unicode/utf8"

	"github.com/leafsql/leafsql/idgen/segment/internal/tagtable"
)

// Marks lists rows of a table by the marks in their descriptions. Tags are in ascending order.
type Marks struct {
	Broken   []*RowError // errors of rows that give no ids: rows of one store of several, from versions before 0.2, or with a mark that cannot be read
	Unmarked []string    // tags of rows whose next fetch writes their first mark
	Full     []string    // tags of rows without room for a mark in the description
}

// NewMark returns the mark for a row that is added on this server, for the end of its description, or "" if
// rows get none. lossy reports that the server may lack rows, as after a fail-over: a new row has to begin
// higher by [Margin]. The table may be missing. Errors wrap the database's, after retries as by Fetch.
func (s *AllocStore) NewMark(ctx context.Context) (mark string, lossy bool, err error) {
	err = s.rows.Retry(ctx, func(c *sql.Conn) error {
		mark, lossy, err = s.newMark(ctx, c)
		if n, _ := tagtable.ServerError(err); lacksDescription(n) { // or no right to lock rows
			return nil
		}
		return err
	})
	return mark, lossy, s.rows.WrapError("read", err)
}

// Marks reads the descriptions of all rows. There are none if the table is missing, or has no column description
// that this user may read. Errors wrap the database's.
func (s *AllocStore) Marks(ctx context.Context) (m Marks, err error) {
	err = s.eachRow(ctx, "biz_tag, COALESCE(description, '')", func(scan func(...any) error) error {
		var tag, description string
		err := scan(&tag, &description)
		text, mark, ok := tagtable.ParseMark(description)
		var broken *tagtable.Error
		place, stores, several := tagtable.ParseStore(description)
		switch {
		case several:
			broken = severalStoresError(place, stores)
		case !ok:
			broken = s.unreadableMarkError(tag, text, description)
		case mark != (tagtable.Mark{}):
		case utf8.RuneCountInString(text) > tagtable.MaxTextLength:
			m.Full = append(m.Full, tag)
		default:
			m.Unmarked = append(m.Unmarked, tag)
		}
		if broken != nil {
			m.Broken = append(m.Broken, &RowError{tag, s.rows.Table, broken.Reason, broken.Fix})
		}
		return err
	})
	if n, _ := tagtable.ServerError(err); lacksDescription(n) || n == tagtable.NoSuchTableNumber {
		return m, nil
	}
	return m, s.rows.WrapError("read", err)
}
