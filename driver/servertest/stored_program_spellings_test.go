package servertest

import (
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path"
	"strings"
	"testing"

	"github.com/leafsql/leafsql/driver"
	"github.com/leafsql/leafsql/testutil/mysqltest"
)

// readSpellings returns the spellings, and the statements that create the tables and programs they use.
func readSpellings(t *testing.T) (spellings, setup []string) {
	t.Helper()
	text, err := os.ReadFile("testdata/spellings.txt")
	if err != nil {
		t.Fatal(err)
	}
	first, second, _ := strings.Cut(string(text), "\n## ")
	lines := func(text string) (list []string) {
		for line := range strings.Lines(text) {
			if line = strings.TrimRight(line, "\n"); line != "" && !strings.HasPrefix(line, "# ") {
				list = append(list, strings.ReplaceAll(line, `\n`, "\n"))
			}
		}
		return list
	}
	return lines(first), lines(second)[1:]
}

const sumsAudit = "CONCAT((SELECT COALESCE(SUM(n), 0) FROM audit), '/', (SELECT COUNT(*) FROM child), '/', (SELECT COALESCE(SUM(id), 0) FROM child), '/', COALESCE(@x, '-'))"

// spellingForms are programs that contain a spelling, {S}, and programs that notice its effect, with the
// statement that runs them. {T} is the table, {F} a function.
var spellingForms = []struct {
	name  string
	setup []string
	text  string
}{
	{"a function, noticed by a trigger", []string{
		"CREATE FUNCTION {F}() RETURNS INT MODIFIES SQL DATA BEGIN {S}; RETURN 1; END",
		"CREATE TRIGGER tr{T} BEFORE INSERT ON {T} FOR EACH ROW SET NEW.b = " + sumsAudit,
	}, "INSERT INTO {T} (a) SELECT {F}() FROM three"},
	{"a function, noticed by what a trigger calls", []string{
		"CREATE FUNCTION {F}() RETURNS INT MODIFIES SQL DATA BEGIN {S}; RETURN 1; END",
		"CREATE TRIGGER tr{T} BEFORE INSERT ON {T} FOR EACH ROW SET NEW.b = sums()",
	}, "INSERT INTO {T} (a) SELECT {F}() FROM three"},
	{"a trigger, noticed by a function", []string{
		"CREATE TRIGGER tr{T} AFTER INSERT ON {T} FOR EACH ROW BEGIN {S}; END",
		"CREATE FUNCTION {F}() RETURNS VARCHAR(40) READS SQL DATA RETURN " + sumsAudit,
	}, "INSERT INTO {T} (b) SELECT {F}() FROM three"},
	{"a function, noticed by an update list", []string{
		"CREATE FUNCTION {F}() RETURNS INT MODIFIES SQL DATA BEGIN {S}; RETURN 1; END",
		"INSERT INTO {T} (id, a) VALUES (1, 0), (2, 0), (3, 0)",
	}, "INSERT INTO {T} (id, a) SELECT c, {F}() FROM three ON DUPLICATE KEY UPDATE b = " + sumsAudit},
}

// spellingSide runs spellings on one database.
type spellingSide struct {
	t         *testing.T
	spellings []string
	db        string
	base, own *sql.DB
	auto      string
}

func newSpellingSide(t *testing.T, target mysqltest.Target, name, auto string) *spellingSide {
	dsn := target.Database(t)
	spellings, setup := readSpellings(t)
	s := &spellingSide{t: t, spellings: spellings, auto: auto, db: path.Base(dsn)}
	var leaf *sql.DB
	s.base, leaf = openOn(t, dsn, "leafTables=t_*&leafCreate=true", append([]string{allocTable}, setup...)...)
	s.base.SetMaxOpenConns(1)
	if s.own = leaf; name == "mysql" {
		var err error
		if s.own, err = sql.Open("mysql", dsn); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.own.Close() })
	}
	s.own.SetMaxOpenConns(1)
	return s
}

// play creates the programs of a form with a spelling, runs the statement, and returns the
// stored rows. ok is false if the server rejects such a program.
func (s *spellingSide) play(form, spelling int) (told string, refused, ok bool) {
	f := spellingForms[form]
	id := fmt.Sprintf("%d_%d", form, spelling)
	fill := strings.NewReplacer("{S}", strings.ReplaceAll(s.spellings[spelling], "{DB}", s.db), "{T}", "t_"+id, "{F}", "f_"+id)
	for _, text := range []string{"DELETE FROM audit", "DELETE FROM child", "DELETE FROM fires", "DELETE FROM parent", "ALTER TABLE audit AUTO_INCREMENT = 1",
		"INSERT INTO audit (k, n) VALUES (1, 1), (2, 10), (3, 100)", "INSERT INTO parent VALUES (1), (2), (3)",
		"INSERT INTO child VALUES (1, 1), (2, 10), (3, 100)", "INSERT INTO fires VALUES (1), (1), (1)",
		"DELETE FROM audit WHERE k > 3", "CREATE TABLE t_" + id + " (id BIGINT NOT NULL " + s.auto + " PRIMARY KEY, a INT, b VARCHAR(40))"} {
		if _, err := s.base.Exec(text); err != nil {
			s.t.Fatalf("%s: %v", text, err)
		}
	}
	for _, text := range f.setup {
		if _, err := s.base.Exec(fill.Replace(text)); err != nil {
			return err.Error(), false, false
		}
	}
	mustExec(s.t, s.own, "SET @x = NULL, @y = NULL")
	_, err := s.own.Exec(fill.Replace(f.text))
	if err != nil {
		return "error", errors.Is(err, driver.ErrRefused), true
	}
	for _, query := range []string{"SELECT GROUP_CONCAT(COALESCE(a, '-'), ':', COALESCE(b, '-') ORDER BY id) FROM t_" + id, "SELECT " + sumsAudit} {
		var v sql.NullString
		if err := s.own.QueryRow(query).Scan(&v); err != nil {
			s.t.Fatal(err)
		}
		told += v.String + "; "
	}
	return told, false, true
}

// TestSpellings: if a stored program writes data that another program reads while a statement runs,
// leafsql detects this in every spelling: the statement has the same effect as under
// AUTO_INCREMENT, or is refused. Each spelling is run in one form, with -twin.full in each.
func TestSpellings(t *testing.T) {
	for _, target := range mysqltest.Targets(t) {
		t.Run(target.Name, func(t *testing.T) {
			t.Parallel()
			plain, leaf := newSpellingSide(t, target, "mysql", "AUTO_INCREMENT"), newSpellingSide(t, target, driver.Name, "")
			told := map[string]int{}
			for i, spelling := range plain.spellings {
				for f, form := range spellingForms {
					if !*twinFull && f != i%len(spellingForms) {
						continue
					}
					want, _, ok := plain.play(f, i)
					if !ok {
						told["no such program"]++
						continue
					}
					got, refused, _ := leaf.play(f, i)
					switch {
					case refused:
						told["refused"]++
					case got != want:
						t.Errorf("%s: %s: %s, want %s", form.name, spelling, got, want)
					default:
						told["equal"]++
					}
				}
			}
			t.Log(told)
		})
	}
}
