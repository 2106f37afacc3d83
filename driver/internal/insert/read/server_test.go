package read

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/leafsql/leafsql/driver/internal/insert"
	"github.com/leafsql/leafsql/driver/internal/insert/inserttest"
	"github.com/leafsql/leafsql/driver/internal/staged"
	"github.com/leafsql/leafsql/internal/quote"
	"github.com/leafsql/leafsql/testutil/mysqltest"
)

// schema has the tables of the corpus. %s is AUTO_INCREMENT or empty.
const schema = `
CREATE TABLE orders (id BIGINT NOT NULL %[1]s PRIMARY KEY, customer VARCHAR(60) UNIQUE, total INT DEFAULT 5) DEFAULT CHARSET utf8mb4;
CREATE TABLE items (order_id INT, item_id BIGINT NOT NULL %[1]s PRIMARY KEY, qty INT);
CREATE TABLE hidden (id BIGINT NOT NULL %[5]s INVISIBLE PRIMARY KEY, a INT, b INT);
CREATE TABLE %[2]s (%[3]s BIGINT NOT NULL %[1]s PRIMARY KEY, %[4]s INT);
CREATE TABLE 1a (id BIGINT NOT NULL %[1]s PRIMARY KEY, 2b INT);
CREATE TABLE größe (schlüssel BIGINT NOT NULL %[1]s PRIMARY KEY, v VARCHAR(9));
CREATE TABLE codes (code VARCHAR(40) PRIMARY KEY, v INT);
CREATE TABLE zeros (id BIGINT NOT NULL PRIMARY KEY, v INT);
CREATE TABLE other (id INT AUTO_INCREMENT PRIMARY KEY, a INT, customer VARCHAR(40));
CREATE TABLE customers (id INT PRIMARY KEY, name VARCHAR(40));
CREATE TABLE x (t INT);`

var schemaTables = []string{"orders", "items", "hidden", "`we``ird`", "1a", "größe", "codes", "zeros", "other", "customers", "x"}

// A twin is one of two databases with the same tables. In one of them the tables are AUTO_INCREMENT.
// Both are used under the name shop.
type twin struct {
	t    testing.TB
	conn *sql.Conn
}

func newTwin(t testing.TB, dsn string, auto bool) *twin {
	t.Helper()
	cfg, err := mysql.ParseDSN(dsn)
	if err != nil {
		t.Fatal(err)
	}
	cfg.MultiStatements = true
	cfg.Params = map[string]string{"sql_mode": "'STRICT_TRANS_TABLES,NO_ENGINE_SUBSTITUTION'"}
	connector, err := mysql.NewConnector(cfg)
	if err != nil {
		t.Fatal(err)
	}
	db := sql.OpenDB(connector)
	t.Cleanup(func() { db.Close() })
	conn, err := db.Conn(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	w := &twin{t, conn}
	number, hidden := "", "DEFAULT 0"
	if auto {
		number, hidden = "AUTO_INCREMENT", "AUTO_INCREMENT"
	}
	w.must(fmt.Sprintf(schema, number, "`we``ird`", "`k``y`", "`a b`", hidden))
	return w
}

func (w *twin) must(text string) {
	w.t.Helper()
	if _, err := w.conn.ExecContext(context.Background(), text); err != nil {
		w.t.Fatalf("%s: %v", text, err)
	}
}

// named returns the tables that a query may use.
func named(text string) []string {
	return slices.DeleteFunc(slices.Clone(schemaTables), func(table string) bool {
		return !strings.Contains(text, table)
	})
}

// reset empties tables.
func (w *twin) reset(tables []string) {
	var b strings.Builder
	b.WriteString("ROLLBACK; ")
	for _, table := range tables {
		fmt.Fprintf(&b, "TRUNCATE %s; ALTER TABLE %[1]s AUTO_INCREMENT=201; ", table)
	}
	b.WriteString("REPLACE INTO customers VALUES (1,'ann'),(2,'bob'),(3,'cid'); SELECT LAST_INSERT_ID(77)")
	w.must(b.String())
}

// exec runs a query and returns the ids of its results.
func (w *twin) exec(text string) (ids []int64, err error) {
	w.conn.Raw(func(c any) error {
		var res driver.Result
		res, err = c.(driver.ExecerContext).ExecContext(context.Background(), text, nil)
		if err == nil {
			ids = res.(mysql.Result).AllLastInsertIds()
		}
		return nil
	})
	return ids, err
}

// dump returns the rows of tables, and LAST_INSERT_ID().
func (w *twin) dump(tables []string) []string {
	w.t.Helper()
	lines := w.query("SELECT LAST_INSERT_ID()")
	for _, table := range tables {
		columns := "*"
		if table == "hidden" {
			columns = "id, a, b"
		}
		for _, row := range w.query("SELECT " + columns + " FROM " + table) {
			lines = append(lines, table+" "+row)
		}
	}
	return lines
}

func (w *twin) query(text string) []string {
	w.t.Helper()
	rows, err := w.conn.QueryContext(context.Background(), text)
	if err != nil {
		w.t.Fatalf("%s: %v", text, err)
	}
	defer rows.Close()
	columns, _ := rows.Columns()
	values, places := make([]sql.NullString, len(columns)), make([]any, len(columns))
	for i := range values {
		places[i] = &values[i]
	}
	var lines []string
	for rows.Next() {
		if err := rows.Scan(places...); err != nil {
			w.t.Fatal(err)
		}
		lines = append(lines, fmt.Sprint(values))
	}
	return lines
}

func (w *twin) prepare(text string) error {
	st, err := w.conn.PrepareContext(context.Background(), text)
	if err == nil {
		st.Close()
	}
	return err
}

// number returns the server's number of an error, or 0.
func number(err error) uint16 {
	if err == nil {
		return 0
	}
	if e, ok := errors.AsType[*mysql.MySQLError](err); ok {
		return e.Number
	}
	return 1
}

// mine replaces the database shop in a query by the twin's database.
func mine(text, dsn string) string {
	cfg, _ := mysql.ParseDSN(dsn)
	for _, shop := range []string{"shop.", "shop .", "`shop`.", "USE shop"} {
		text = strings.ReplaceAll(text, shop, strings.Replace(shop, "shop", cfg.DBName, 1))
	}
	return text
}

// TestFilledCorpusEqualsAutoIncrement runs the whole corpus on a server: the original queries on AUTO_INCREMENT tables, and the
// changed queries on plain tables. Afterwards the tables, the errors and LAST_INSERT_ID() must be
// equal.
func TestFilledCorpusEqualsAutoIncrement(t *testing.T) {
	for _, target := range mysqltest.Targets(t) {
		t.Run(target.Name, func(t *testing.T) {
			autoDSN, plainDSN := target.Database(t), target.Database(t)
			auto, plain := newTwin(t, autoDSN, true), newTwin(t, plainDSN, false)
			set := ""
			if target.Name == "mysql" {
				set = "mysql"
			}
			mode, schema := settings(set)
			for _, file := range goldenFiles(t) {
				for _, c := range readGolden(t, file) {
					if c.settings != "" && c.settings != set || skipOnServer(c.text) {
						continue
					}
					p, unknown, err := Parse(c.text, mode, schema)
					if err != nil || unknown {
						continue
					}
					auto.reset(named(c.text))
					plain.reset(named(c.text))
					checkOnServer(t, filepath.Base(file), c.text, p, auto, plain, autoDSN, plainDSN)
				}
			}
		})
	}
}

// TestServerGenerated does the same with statements from a grammar.
func TestServerGenerated(t *testing.T) {
	for _, target := range mysqltest.Targets(t) {
		t.Run(target.Name, func(t *testing.T) {
			autoDSN, plainDSN := target.Database(t), target.Database(t)
			auto, plain := newTwin(t, autoDSN, true), newTwin(t, plainDSN, false)
			set := ""
			if target.Name == "mysql" {
				set = "mysql"
			}
			mode, schema := settings(set)
			seed := rand.Uint64()
			t.Logf("seed %d", seed)
			g := inserttest.NewGenerator(seed)
			for range 100 {
				text := strings.ReplaceAll(g.Insert(), "?", "8")
				if skipOnServer(text) {
					continue
				}
				p, unknown, err := Parse(text, mode, schema)
				if err != nil || unknown {
					continue
				}
				auto.reset([]string{"orders"})
				plain.reset([]string{"orders"})
				checkOnServer(t, "generated", text, p, auto, plain, autoDSN, plainDSN)
			}
		})
	}
}

// skipOnServer reports whether a query has effects that the test cannot undo or compare.
func skipOnServer(text string) bool {
	for _, word := range []string{"USE ", "CREATE ", "GRANT", "REVOKE", "ALTER", "HANDLER", "zeros", "codes", "other", "LOCK TABLES", "HELP", "SLEEP", "FOR JOIN", "UUID", "DELAYED", "sql_mode"} {
		if strings.Contains(text, word) {
			return true
		}
	}
	return false
}

func checkOnServer(t *testing.T, file, text string, p *insert.Plan, auto, plain *twin, autoDSN, plainDSN string) {
	t.Helper()
	if p.Cut > 0 || len(p.Inserts) > 0 && p.Inserts[0].NeedsOwnText() {
		if p.NumInput == 0 {
			checkInParts(t, file, text, p, auto, plain, autoDSN, plainDSN)
		}
		return
	}
	fills := blocksFor(p, 201)
	next := map[*insert.Table]int64{}
	for i, in := range p.Inserts {
		fills[i].First = 201 + next[in.Table]
		next[in.Table] += int64(fills[i].N)
	}
	upsert := false // or another reason for a different LAST_INSERT_ID()
	for _, in := range p.Inserts {
		upsert = upsert || in.Duplicates >= insert.Ignore || in.Way != insert.IDInText || in.RowsWithoutKey+len(in.ArgKeys) == 0
	}
	filled := p.Text(fills)
	if p.NumInput > 0 {
		filled = p.Template(fills).Text
	}
	if a, b := number(auto.prepare(mine(text, autoDSN))), number(plain.prepare(mine(filled, plainDSN))); a != b {
		t.Errorf("%s: %s\nPREPARE returned error %d, want %d as with keys:\n%s", file, text, a, b, filled)
	}
	if p.NumInput > 0 {
		return
	}
	idsAuto, errAuto := auto.exec(mine(text, autoDSN))
	idsPlain, errPlain := plain.exec(mine(filled, plainDSN))
	a, b := number(errAuto), number(errPlain)
	if len(p.Inserts) == 0 && b == 1364 && a == 0 {
		t.Errorf("%s: %s\nno INSERT was filled, want one, since the server requires a key", file, text)
	}
	if a == 1869 {
		return // a rule of AUTO_INCREMENT alone
	}
	if a != b && len(p.Inserts) > 0 {
		t.Errorf("%s: %s\nerror with keys = %v, want %v:\n%s", file, text, errPlain, errAuto, filled)
		return
	}
	if b != 0 || len(p.Inserts) == 0 {
		return
	}
	rowsAuto, rowsPlain := auto.dump(named(text)), plain.dump(named(text))
	if upsert {
		rowsAuto, rowsPlain = renumber(rowsAuto[1:]), renumber(rowsPlain[1:])
	} else if !slices.Equal(idsAuto, idsPlain) {
		t.Errorf("%s: %s\nids with keys = %v, want %v:\n%s", file, text, idsPlain, idsAuto, filled)
	}
	if !slices.Equal(rowsAuto, rowsPlain) {
		t.Errorf("%s: %s\nrows with keys %v\nwant           %v\n%s", file, text, rowsPlain, rowsAuto, filled)
	}
}

// checkInParts is like checkOnServer, for a query that runs in several parts: cut, or through a stage.
func checkInParts(t *testing.T, file, text string, p *insert.Plan, auto, plain *twin, autoDSN, plainDSN string) {
	t.Helper()
	_, errAuto := auto.exec(mine(text, autoDSN))
	next := int64(201)
	errPlain := plain.inParts(p, text, plainDSN, &next)
	if errPlain == errUnclear {
		return
	}
	// If there are several errors, another one may come first. An update list that names a column of
	// the source is refused. MySQL does not allow it to set an AUTO_INCREMENT key that was generated
	// (1869).
	column := p.Cut == 0 && p.Inserts[0].Duplicates >= insert.Update
	if a, b := number(errAuto), number(errPlain); (a == 0) != (b == 0) && !((a == 1054 || b == 1054 || a == 1869) && column) {
		t.Errorf("%s: %s\nerror in parts = %v, want %v", file, text, errPlain, errAuto)
	}
	if errAuto != nil || errPlain != nil {
		return
	}
	rowsAuto, rowsPlain := renumber(auto.dump(named(text))[1:]), renumber(plain.dump(named(text))[1:])
	if !slices.Equal(rowsAuto, rowsPlain) {
		t.Errorf("%s: %s\nrows in parts %v\nwant          %v", file, text, rowsPlain, rowsAuto)
	}
}

// inParts runs a query as its plan requires.
func (w *twin) inParts(p *insert.Plan, text, dsn string, next *int64) error {
	settings := insert.Settings{SessionKnown: true, Version: 90704}
	var version string
	w.conn.QueryRowContext(context.Background(), "SELECT VERSION()").Scan(&version)
	if strings.Contains(version, "MariaDB") {
		settings.MariaDB, settings.Version = true, 101119
	}
	for ; p.Cut > 0; text = text[p.Cut:] {
		head, _, err := Parse(text[:p.Cut], settings, shop)
		if err != nil {
			w.t.Fatalf("%s: %v", text[:p.Cut], err)
		}
		if err := w.inParts(head, text[:p.Cut], dsn, next); err != nil {
			return err
		}
		if p, _, err = Parse(text[p.Cut:], settings, shop); err != nil {
			w.t.Fatalf("%s: %v", text, err)
		}
	}
	if len(p.Inserts) == 0 || p.Inserts[0].Staging == nil {
		blocks := blocksFor(p, *next)
		for _, b := range blocks {
			*next += int64(b.N)
		}
		_, err := w.exec(mine(p.Text(blocks), dsn))
		return err
	}
	in := &p.Inserts[0]
	s := in.Staging
	columns := make([]string, len(s.Columns))
	for i, c := range s.Columns {
		columns[i] = p.Inserts[0].Table.Name.Table
		columns[i] = quote.Qualified(columns[i], c)
	}
	w.exec("DROP TEMPORARY TABLE IF EXISTS stage")
	if _, err := w.exec("CREATE TEMPORARY TABLE stage (leafsql_n BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY) SELECT " + strings.Join(columns, ", ") +
		" FROM (SELECT 1) leafsql_q LEFT JOIN " + quote.Name(p.Inserts[0].Table.Name.Table) + " ON FALSE LIMIT 0"); err != nil {
		return err
	}
	if _, err := w.exec(mine(staged.FillQuery(s, "stage", ""), dsn)); err != nil {
		return err
	}
	b := insert.Block{First: *next}
	count := "SELECT COUNT(*), 0, 0, 0 FROM stage"
	if s.Key >= 0 {
		count = staged.CountQuery(in, "stage", math.MaxInt64)
	}
	var highest sql.NullInt64
	if err := w.conn.QueryRowContext(context.Background(), count).Scan(&b.N, &highest, new(any), new(any)); err != nil {
		return err
	}
	if rows := w.query("SELECT COUNT(*) FROM stage"); rows[0] == "[{0 true}]" {
		return nil
	}
	b.First = max(b.First, highest.Int64+1)
	*next = b.First + int64(b.N)
	copied, _ := staged.CopyQuery(in, "stage", "", b)
	_, err := w.exec(mine(copied, dsn))
	return err
}

// errUnclear is the error for a key if its meaning depends on the column.
var errUnclear = errors.New("unclear")

var generated = regexp.MustCompile(`\{2\d\d true\}`)

// renumber removes the gaps in the generated ids: AUTO_INCREMENT may skip the number of a row that was
// not stored.
func renumber(rows []string) []string {
	next := 200
	for i, row := range rows {
		rows[i] = generated.ReplaceAllStringFunc(row, func(string) string {
			next++
			return fmt.Sprintf("{%d true}", next)
		})
	}
	return rows
}
