package driver_test

import (
	"database/sql"
	"errors"
	"fmt"
	"path"
	"strings"
	"testing"

	"github.com/leafsql/leafsql/driver"
	"github.com/leafsql/leafsql/testutil/mysqltest"
)

// A spelling is a statement of a stored program that writes the table audit or the
// variable @x. {DB} is the database.
var spellings = []string{
	"UPDATE audit SET n = n + 1", "UPDATE IGNORE audit SET n = n + 1", "UPDATE LOW_PRIORITY audit SET n = n + 1", "UPDATE LOW_PRIORITY IGNORE audit SET n = n + 1", "update/**/audit set n=n+1",
	"UPDATE three x JOIN audit y SET y.n = y.n + 1", "UPDATE three x, audit y SET y.n = y.n + 1", "UPDATE (three x JOIN audit y) SET y.n = y.n + 1", "UPDATE three x STRAIGHT_JOIN audit y SET y.n = y.n + 1",
	"UPDATE three x LEFT JOIN (audit y) ON TRUE SET y.n = y.n + 1", "UPDATE (three x, (audit y)) SET y.n = y.n + 1", "UPDATE audit AS three SET three.n = three.n + 1", "UPDATE `audit` SET n = n + 1", "UPDATE {DB}.audit SET n = n + 1", "UPDATE `{DB}` . `audit` SET n = n + 1", "UPDATE /* three */ audit SET n = n + 1",
	"UPDATE -- three\n audit SET n = n + 1", "/*!UPDATE*/ audit SET n = n + 1", "/*!50000 UPDATE */ /*!50000 audit */ SET n = n + 1", "UPDATE audit PARTITION (p0) SET n = n + 1", "UPDATE va SET n = n + 1", "WITH w AS (SELECT 1 c) UPDATE audit SET n = n + 1", "UPDATE (SELECT 1 c) d JOIN audit y SET y.n = y.n + d.c",
	"DELETE FROM audit ORDER BY k LIMIT 1", "DELETE QUICK FROM audit ORDER BY k LIMIT 1", "DELETE LOW_PRIORITY QUICK IGNORE FROM audit ORDER BY k LIMIT 1", "DELETE y FROM audit y JOIN (SELECT MIN(k) k FROM audit) m ON y.k = m.k",
	"DELETE y.* FROM three x JOIN audit y JOIN (SELECT MIN(k) k FROM audit) m ON y.k = m.k", "DELETE FROM y USING audit y JOIN (SELECT MIN(k) k FROM audit) m ON y.k = m.k", "DELETE audit FROM audit", "DELETE IGNORE FROM y USING three AS x, audit AS y", "WITH w AS (SELECT 1) DELETE FROM audit ORDER BY k LIMIT 1", "DELETE FROM {DB}.audit", "DELETE FROM va ORDER BY k LIMIT 1",
	"INSERT INTO audit (n) VALUES (1)", "INSERT/**/INTO audit (n) VALUES (1)", "insert -- x\n into audit (n) values (1)", "INSERT # x\nINTO audit (n) VALUES (1)", "INSERT audit (n) VALUES (1)", "INSERT audit SET n = 1", "INSERT IGNORE audit SET n = 1", "INSERT HIGH_PRIORITY IGNORE INTO audit (n) VALUES (1)", "INSERT INTO`audit`(n)VALUES(1)", "INSERT INTO audit () VALUES ()",
	"INSERT INTO audit (n) SELECT 1 FROM three", "INSERT INTO audit (k, n) VALUES (1, 1) ON DUPLICATE KEY UPDATE n = n + 1", "INSERT INTO va (n) VALUES (1)", "INSERT /*!INTO*/ /*!audit*/ (n) VALUES (1)", "INSERT INTO /*!99999 three */ audit (n) VALUES (1)", "INSERT DELAYED INTO audit (n) VALUES (1)",
	"REPLACE audit (k, n) VALUES (1, RAND() + 5)", "REPLACE INTO audit SET n = 1", "REPLACE DELAYED audit (n) VALUES (1)", "REPLACE LOW_PRIORITY INTO audit (n) SELECT 1", "REPLACE\n`audit` SET n = 1",
	"TRUNCATE audit", "TRUNCATE TABLE audit", "LOAD DATA INFILE '/nosuch' INTO TABLE audit", "EXECUTE IMMEDIATE 'UPDATE audit SET n = n + 1'", "BEGIN PREPARE s FROM 'UPDATE audit SET n = n + 1'; EXECUTE s; END", "HANDLER audit OPEN", "XA START 'x'", "ALTER TABLE audit ADD z INT", "LOCK TABLES audit WRITE",
	"CALL p()", "CALL p", "CALL {DB}.p()", "CALL `{DB}`.`p`()", "CALL/**/p()", "/*!CALL*/ p()", "CALL q(1)", "CALL deeper()", "DO g()", "SET @y = g()", "SET @y = {DB}.g()", "SET @y = `g` ()", "SELECT g() INTO @y", "BEGIN DECLARE v INT DEFAULT g(); END", "IF g() THEN DO 1; END IF", "CASE g() WHEN 1 THEN DO 1; ELSE DO 2; END CASE",
	"WHILE g() < 0 DO DO 1; END WHILE", "BEGIN DECLARE c CURSOR FOR SELECT g(); OPEN c; CLOSE c; END", "SET @y = (SELECT l FROM calls LIMIT 1)", "BEGIN DECLARE CONTINUE HANDLER FOR SQLEXCEPTION UPDATE audit SET n = n + 1; SIGNAL SQLSTATE '45000'; END",
	"lab: BEGIN IF TRUE THEN UPDATE audit SET n = n + 1; LEAVE lab; END IF; END", "REPEAT UPDATE audit SET n = n + 1; UNTIL TRUE END REPEAT", "INSERT INTO fires VALUES (1)", "UPDATE fires SET a = a + 1", "DELETE FROM fires LIMIT 1", "INSERT INTO vfires VALUES (1)",
	"SET @x = COALESCE(@x, 0) + 1", "SET @X = COALESCE(@x, 0) + 1", "SET @`x` = COALESCE(@x, 0) + 1", "SET @'x' = COALESCE(@x, 0) + 1", "SET @y = 1, @x = COALESCE(@x, 0) + 1", "SET @y := 1, @x := COALESCE(@x, 0) + 1", "SELECT COALESCE(@x, 0) + 1 INTO @x", "SELECT 1, COALESCE(@x, 0) + 1 INTO @y, @x", "SELECT COUNT(*) INTO @x FROM audit",
	"DO @x := COALESCE(@x, 0) + 1", "SET @y = (@x := COALESCE(@x, 0) + 1)", "IF (@x := COALESCE(@x, 0) + 1) THEN DO 1; END IF", "CALL outs(@x)", "GET DIAGNOSTICS @x = NUMBER", "BEGIN DECLARE c CURSOR FOR SELECT COALESCE(@x, 0) + 1; OPEN c; FETCH c INTO @x; CLOSE c; END", "SET/**/@x=COALESCE(@x,0)+1", "SELECT COALESCE(@x, 0) + 1 FROM three LIMIT 1 INTO @x", "CALL sets()", "DO setting()",
	"UPDATE audit SET n = (@x := COALESCE(@x, 0) + 1)",
}

// spelled are what the spellings go by, beside tables.
var spelled = []string{
	"CREATE TABLE three (c INT)", "INSERT INTO three VALUES (1), (2), (3)", "CREATE TABLE parent (id INT PRIMARY KEY)",
	"CREATE TABLE audit (k INT AUTO_INCREMENT PRIMARY KEY, n INT DEFAULT 1)", "CREATE TABLE child (id INT, n INT, FOREIGN KEY (id) REFERENCES parent (id) ON DELETE CASCADE ON UPDATE CASCADE)", "CREATE VIEW va AS SELECT k, n FROM audit", "CREATE TABLE fires (a INT)", "CREATE VIEW vfires AS SELECT a FROM fires",
	"CREATE TRIGGER fi AFTER INSERT ON fires FOR EACH ROW UPDATE LOW_PRIORITY audit SET n = n + 1", "CREATE TRIGGER fu AFTER UPDATE ON fires FOR EACH ROW UPDATE IGNORE audit SET n = n + 1", "CREATE TRIGGER fd AFTER DELETE ON fires FOR EACH ROW INSERT/**/INTO audit (n) VALUES (1)",
	"CREATE PROCEDURE p() UPDATE IGNORE audit SET n = n + 1", "CREATE PROCEDURE q(a INT) UPDATE three x JOIN audit y SET y.n = y.n + a", "CREATE PROCEDURE deeper() CALL p()", "CREATE PROCEDURE outs(OUT o INT) SET o = (SELECT COUNT(*) FROM three)", "CREATE PROCEDURE sets() SET @x = COALESCE(@x, 0) + 1",
	"CREATE FUNCTION g() RETURNS INT MODIFIES SQL DATA BEGIN UPDATE LOW_PRIORITY audit SET n = n + 1; RETURN 1; END", "CREATE FUNCTION setting() RETURNS INT NO SQL BEGIN SET @x = COALESCE(@x, 0) + 1; RETURN @x; END", "CREATE VIEW calls AS SELECT g() l FROM three",
	"CREATE FUNCTION sums() RETURNS VARCHAR(40) READS SQL DATA RETURN CONCAT((SELECT SUM(n) FROM va), '/', (SELECT COUNT(*) FROM child), '/', COALESCE(@x, '-'))",
}

const sumsAudit = "CONCAT((SELECT COALESCE(SUM(n), 0) FROM audit), '/', (SELECT COUNT(*) FROM child), '/', (SELECT COALESCE(SUM(id), 0) FROM child), '/', COALESCE(@x, '-'))"

// spellingForms are where a spelling stands, {S}, and who notices, with the statement
// behind. {T} is the table, {F} a function.
var spellingForms = []struct {
	name  string
	setup []string
	text  string
}{
	{"a function, noticed by a trigger", []string{"CREATE FUNCTION {F}() RETURNS INT MODIFIES SQL DATA BEGIN {S}; RETURN 1; END", "CREATE TRIGGER tr{T} BEFORE INSERT ON {T} FOR EACH ROW SET NEW.b = " + sumsAudit}, "INSERT INTO {T} (a) SELECT {F}() FROM three"},
	{"a function, noticed by what a trigger calls", []string{"CREATE FUNCTION {F}() RETURNS INT MODIFIES SQL DATA BEGIN {S}; RETURN 1; END", "CREATE TRIGGER tr{T} BEFORE INSERT ON {T} FOR EACH ROW SET NEW.b = sums()"}, "INSERT INTO {T} (a) SELECT {F}() FROM three"},
	{"a trigger, noticed by a function", []string{"CREATE TRIGGER tr{T} AFTER INSERT ON {T} FOR EACH ROW BEGIN {S}; END", "CREATE FUNCTION {F}() RETURNS VARCHAR(40) READS SQL DATA RETURN " + sumsAudit}, "INSERT INTO {T} (b) SELECT {F}() FROM three"},
	{"a function, noticed by an update list", []string{"CREATE FUNCTION {F}() RETURNS INT MODIFIES SQL DATA BEGIN {S}; RETURN 1; END", "INSERT INTO {T} (id, a) VALUES (1, 0), (2, 0), (3, 0)"}, "INSERT INTO {T} (id, a) SELECT c, {F}() FROM three ON DUPLICATE KEY UPDATE b = " + sumsAudit},
}

// spellingSide plays spellings on one database.
type spellingSide struct {
	t         *testing.T
	db        string
	base, own *sql.DB
	auto      string
}

func newSpellingSide(t *testing.T, target mysqltest.Target, name, auto string) *spellingSide {
	dsn := target.Database(t)
	s := &spellingSide{t: t, auto: auto, db: path.Base(dsn)}
	var leaf *sql.DB
	s.base, leaf = openOn(t, dsn, "leafTables=t_*&leafCreate=true", append([]string{allocTable}, spelled...)...)
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

// play makes what a form and a spelling need, runs the statement, and tells what it
// left. ok is false where the server does not take such a program.
func (s *spellingSide) play(form, spelling int) (told string, refused, ok bool) {
	f := spellingForms[form]
	id := fmt.Sprintf("%d_%d", form, spelling)
	fill := strings.NewReplacer("{S}", strings.ReplaceAll(spellings[spelling], "{DB}", s.db), "{T}", "t_"+id, "{F}", "f_"+id)
	for _, text := range []string{"DELETE FROM audit", "DELETE FROM child", "DELETE FROM fires", "DELETE FROM parent", "ALTER TABLE audit AUTO_INCREMENT = 1", "INSERT INTO audit (k, n) VALUES (1, 1), (2, 10), (3, 100)", "INSERT INTO parent VALUES (1), (2), (3)", "INSERT INTO child VALUES (1, 1), (2, 10), (3, 100)", "INSERT INTO fires VALUES (1), (1), (1)",
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

// TestSpellings: what a stored program writes, and another notices while a statement
// runs, is seen however it is written: the statement does what it does under
// AUTO_INCREMENT, or is refused. Each spelling is played in one form, with -twin.full in each.
func TestSpellings(t *testing.T) {
	for _, target := range mysqltest.Targets(t) {
		t.Run(target.Name, func(t *testing.T) {
			plain, leaf := newSpellingSide(t, target, "mysql", "AUTO_INCREMENT"), newSpellingSide(t, target, driver.Name, "")
			told := map[string]int{}
			for i, spelling := range spellings {
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
