package driver

import (
	"context"
	"database/sql/driver"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/leafsql/leafsql/driver/internal/catalog"
	"github.com/leafsql/leafsql/driver/internal/insert"
)

// ask completes settings by what is missing, on the application's own
// connection: they are the session's.
func (c *conn) ask(ctx context.Context, settings insert.Settings, missing insert.Missing) (insert.Settings, error) {
	if missing&insert.MissingSQLMode != 0 && !settings.SQLModeKnown {
		v, err := scalar(ctx, c.innerConn, "SELECT @@sql_mode")
		if err != nil {
			return settings, err
		}
		settings.SetSQLMode(v)
	}
	if missing&insert.MissingCharset != 0 && !settings.CharsetKnown {
		v, err := scalar(ctx, c.innerConn, "SELECT @@character_set_client")
		if err != nil {
			return settings, err
		}
		settings.Charset, settings.CharsetKnown = v, true
		c.settings.Charset, c.settings.CharsetKnown = v, true // until a text sets it
		c.replan()
	}
	return settings, nil
}

// parseVersion reads VERSION() as version comments write it: "10.11.19-MariaDB"
// is 101119, "8.4.3" is 80403. MariaDB may put "5.5.5-" before its own.
func parseVersion(s string) (mariaDB bool, version int) {
	mariaDB = strings.Contains(strings.ToLower(s), "mariadb")
	if mariaDB {
		s = strings.TrimPrefix(s, "5.5.5-")
	}
	s, _, _ = strings.Cut(s, "-")
	parts := strings.SplitN(s, ".", 4)
	for i := range 3 {
		version *= 100
		if i < len(parts) {
			n, _ := strconv.Atoi(parts[i]) // a part that is no number counts 0
			version += min(n, 99)
		}
	}
	return mariaDB, version
}

// text reads a value of a text result, whatever the inner driver made of it.
func text(v driver.Value) string {
	switch v := v.(type) {
	case []byte:
		return string(v)
	case string:
		return v
	case nil:
		return ""
	}
	return fmt.Sprint(v)
}

// visibleColumns asks for the columns of a table as this connection sees it. It
// reads nothing, so that no snapshot of a transaction begins with it.
func visibleColumns(ctx context.Context, conn innerConn, name catalog.Name) ([]string, error) {
	rows, err := conn.QueryContext(ctx, "SELECT * FROM "+name.Quoted()+" LIMIT 0", nil)
	if err != nil {
		return nil, err
	}
	return rows.Columns(), rows.Close()
}

func currentDatabase(ctx context.Context, conn innerConn) (string, error) {
	return scalar(ctx, conn, "SELECT DATABASE()")
}

// scalar asks for one value by a select without a LIMIT, "" for NULL. It gets
// one because the session's sql_select_limit, which may be 0, would count.
func scalar(ctx context.Context, conn innerConn, query string) (string, error) {
	rows, err := conn.QueryContext(ctx, query+" LIMIT 1", nil)
	if err != nil {
		return "", err
	}
	defer rows.Close()
	dest := make([]driver.Value, len(rows.Columns()))
	if err := rows.Next(dest); err != nil && err != io.EOF {
		return "", err
	}
	if len(dest) == 0 {
		return "", nil
	}
	return text(dest[0]), nil
}
