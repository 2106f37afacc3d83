package segment

import (
	"context"
	"database/sql"
	"unicode/utf8"

	"github.com/leafsql/leafsql/idgen/segment/internal/tagtable"
	"github.com/leafsql/leafsql/internal/control"
)

func (s allocRows) NewMark(ctx context.Context) (mark string, lossy bool, err error) {
	err = s.rows.Retry(ctx, func(c *sql.Conn) error {
		mark, lossy, err = s.newMark(ctx, c)
		if n, _ := tagtable.ServerError(err); lacksDescription(n) { // or no right to lock rows
			return nil
		}
		return err
	})
	return mark, lossy, s.rows.WrapError("read", err)
}

func (s allocRows) Marks(ctx context.Context) (m control.Marks, err error) {
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
