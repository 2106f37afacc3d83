package driver

import (
	"context"
	"database/sql/driver"
	"io"
	"strconv"
	"strings"

	"github.com/leafsql/leafsql/driver/internal/insert"
	"github.com/leafsql/leafsql/driver/internal/lex"
)

// ask completes mode by what need says, on the application's own connection:
// the settings are the session's. The version is asked once a connection.
func (c *conn) ask(ctx context.Context, mode insert.Mode, need insert.Need) (insert.Mode, error) {
	if need&insert.NeedVersion != 0 && !mode.VersionKnown {
		v, err := scalar(ctx, c.innerConn, "SELECT VERSION()")
		if err != nil {
			return mode, err
		}
		mode.MariaDB, mode.Version = parseVersion(v)
		mode.VersionKnown = true
		c.mode.MariaDB, c.mode.Version, c.mode.VersionKnown = mode.MariaDB, mode.Version, true
		c.replan()
	}
	if need&insert.NeedSQLMode != 0 && !mode.SQLModeKnown {
		v, err := scalar(ctx, c.innerConn, "SELECT @@sql_mode")
		if err != nil {
			return mode, err
		}
		for name := range strings.SplitSeq(v, ",") {
			switch name {
			case "NO_BACKSLASH_ESCAPES":
				mode.NoBackslashEscapes = true
			case "ANSI_QUOTES":
				mode.ANSIQuotes = true
			}
		}
		mode.SQLModeKnown = true
	}
	if need&insert.NeedCharset != 0 && !mode.CharsetKnown {
		v, err := scalar(ctx, c.innerConn, "SELECT @@character_set_client")
		if err != nil {
			return mode, err
		}
		mode.Charset, mode.CharsetKnown = lex.CharsetOf(v), true
	}
	return mode, nil
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

func currentDatabase(ctx context.Context, conn innerConn) (string, error) {
	return scalar(ctx, conn, "SELECT DATABASE()")
}

// scalar asks for one value, "" for NULL.
func scalar(ctx context.Context, conn innerConn, query string) (string, error) {
	rows, err := conn.QueryContext(ctx, query, nil)
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
