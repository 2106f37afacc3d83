package driver

import (
	"context"
	"database/sql/driver"
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/leafsql/leafsql/driver/internal/insert"
)

// A keyMeaning is what an argument in the key column says.
type keyMeaning int

const (
	keyGiven   keyMeaning = iota // a key
	keyWanted                    // please generate
	keyUnclear                   // no number: an error or 0, as sql_mode says
)

// meaning reads an argument in the key column as an AUTO_INCREMENT column
// would: NULL wants a key, and so does, unless zeros are values, whatever the
// server rounds to 0. Arguments are as database/sql hands them over, already
// one of driver.Value's types.
func meaning(v driver.Value, t *insert.Table) keyMeaning {
	wanted := func(zero bool) keyMeaning {
		if zero && !t.KeepZero {
			return keyWanted
		}
		return keyGiven
	}
	switch v := v.(type) {
	case nil:
		return keyWanted
	case int64:
		return wanted(v == 0)
	case string:
		return textMeaning(v, t)
	case []byte:
		if v == nil {
			return keyWanted
		}
		return textMeaning(string(v), t)
	case json.RawMessage:
		if v == nil {
			return keyWanted
		}
		return textMeaning(string(v), t)
	case uint64:
		return wanted(v == 0)
	case bool:
		return wanted(!v)
	case float64:
		// A prepared 0.5 rounds to 0, an interpolated one to 1: neither is a key.
		return wanted(v == 0 || t.IntegerKey && v >= -0.5 && v <= 0.5)
	case time.Time:
		if t.IntegerKey {
			return keyUnclear
		}
	}
	return keyGiven
}

// textMeaning is meaning for strings. In a key of another type than an integer
// "00" and "0.1" are keys of their own.
func textMeaning(s string, t *insert.Table) keyMeaning {
	switch {
	case t.KeepZero && t.IntegerKey && s != "" && strings.Trim(s, "0123456789") == "":
		return keyGiven
	case !t.IntegerKey:
		if s == "0" && !t.KeepZero {
			return keyWanted
		}
		return keyGiven
	case s == "0":
		return keyWanted
	}
	f, whole := leadingNumber(s)
	switch {
	case !whole:
		return keyUnclear
	case f >= -0.5 && f <= 0.5 && !t.KeepZero:
		return keyWanted
	}
	return keyGiven
}

// leadingNumber reads the number that a string begins with, as the server
// does, 0 if with none. whole says that nothing but white space is around it.
func leadingNumber(s string) (f float64, whole bool) {
	s = strings.Trim(s, " \t\n\v\f\r")
	for end := min(len(s), 400); end > 0; end-- {
		if strings.ContainsAny(s[:end], "xXpP_iInN") { // Go's own forms of numbers
			continue
		}
		if f, err := strconv.ParseFloat(s[:end], 64); err == nil {
			return f, end == len(s)
		}
	}
	return 0, false
}

// resolve decides an argument that is no number: in strict mode the server has
// an error for it, otherwise it takes the number that it begins with.
func (c *conn) resolve(ctx context.Context, in *insert.Insert, v driver.Value) (keyMeaning, error) {
	if !in.Ignore {
		mode, err := scalar(ctx, c.innerConn, "SELECT @@sql_mode")
		if err != nil {
			return keyUnclear, err
		}
		if strings.Contains(mode, "STRICT_ALL_TABLES") || strings.Contains(mode, "STRICT_TRANS_TABLES") && in.Table.Ref.(*table).transactional {
			return keyGiven, nil
		}
	}
	if in.Table.KeepZero {
		return keyGiven, nil
	}
	var f float64
	switch v := v.(type) {
	case string:
		f, _ = leadingNumber(v)
	case []byte:
		f, _ = leadingNumber(string(v))
	case json.RawMessage:
		f, _ = leadingNumber(string(v))
	case time.Time:
		if !v.IsZero() {
			f = float64(v.Year())
		}
	}
	if f >= -0.5 && f <= 0.5 {
		return keyWanted, nil
	}
	return keyGiven, nil
}
