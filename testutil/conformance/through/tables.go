package through

import (
	"bufio"
	"context"
	"database/sql"
	sqldriver "database/sql/driver"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/leafsql/leafsql/driver"
	"github.com/leafsql/leafsql/idgen/segment"
)

// hiddenColumns contains the key column that is added to tables without a key,
// by mode. SELECT * does not show it, and INSERT without a column list does not
// include it. The CHECK refuses a row that was not filled.
var hiddenColumns = map[string]string{
	"hidden": "leaf_id BIGINT NOT NULL AUTO_INCREMENT INVISIBLE PRIMARY KEY, ",
	"filled": "leaf_id BIGINT NOT NULL DEFAULT 0 INVISIBLE PRIMARY KEY CHECK (leaf_id > 0), ",
}

// tables records the tables that a suite creates. Suites create the same tables
// again and again, and expect ids that start at 1 each time.
type tables struct {
	mode   string
	hidden string  // column added to a CREATE TABLE without a key
	db     *sql.DB // connects without mysql-leaf
	store  *segment.AllocStore

	mu       sync.Mutex
	file     *os.File
	verdicts map[string]bool // by pattern: whether every table with such a name can be filled
	ids      map[string]*tableIDs
}

func openTables(mode, path string, hidden bool) (*tables, error) {
	db, err := sql.Open("mysql-inner", os.Getenv(EnvDSN))
	if err != nil {
		return nil, err
	}
	t := &tables{mode: mode, db: db, verdicts: map[string]bool{}, ids: map[string]*tableIDs{}}
	if mode == "filled" {
		if t.store, err = openStore(db); err != nil {
			return nil, err
		}
	}
	if hidden {
		t.hidden = hiddenColumns[mode]
	}
	if mode == "none" {
		t.file, err = os.Create(path)
		return t, err
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var pattern, key string
		if _, err := fmt.Sscan(lines.Text(), &pattern, &key); err != nil {
			return nil, err
		}
		fits := key == "integer" || key == "none" && hidden
		if before, seen := t.verdicts[pattern]; seen {
			fits = fits && before
		}
		t.verdicts[pattern] = fits
	}
	return t, nil
}

var randomSuffix = regexp.MustCompile(`[0-9a-f]{16}$`)

// recordTable records a table and its kind of key.
func (t *tables) recordTable(ctx context.Context, c conn, name string, keyed bool) {
	if t.file == nil {
		return
	}
	key := "none"
	if keyed {
		key = primaryKey(ctx, c, name)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, err := fmt.Fprintln(t.file, randomSuffix.ReplaceAllString(name, "*"), key); err != nil {
		panic(err)
	}
}

// primaryKey returns "integer" for a table with one integer column as its key, "other"
// for another table, and "unknown" if the columns cannot be read.
func primaryKey(ctx context.Context, c conn, name string) string {
	rows, err := c.QueryContext(ctx, "SHOW COLUMNS FROM `"+name+"`", nil)
	if err != nil {
		return "unknown"
	}
	defer rows.Close()
	integer, keys := false, 0
	row := make([]sqldriver.Value, len(rows.Columns()))
	for {
		if err := rows.Next(row); err == io.EOF {
			break
		} else if err != nil {
			return "unknown"
		}
		if fmt.Sprintf("%s", row[3]) == "PRI" {
			keys++
			integer = strings.Contains(fmt.Sprintf("%s", row[1]), "int")
		}
	}
	if integer && keys == 1 {
		return "integer"
	}
	return "other"
}

// rules returns the rules for the tables that can be filled.
func (t *tables) rules() []driver.Rule {
	if t.mode != "filled" {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	var rules []driver.Rule
	for pattern, fits := range t.verdicts {
		if !fits {
			continue
		}
		if t.ids[pattern] == nil {
			t.ids[pattern] = &tableIDs{table: pattern, db: t.db, store: t.store}
		}
		rules = append(rules, driver.Rule{Database: "*", Table: pattern, Generator: t.ids[pattern]})
	}
	slices.SortFunc(rules, func(a, b driver.Rule) int { return strings.Compare(a.Table, b.Table) })
	return rules
}

// restart makes a table's ids start at 1 again.
func (t *tables) restart(name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if g := t.ids[name]; g != nil {
		g.restart()
	}
}
