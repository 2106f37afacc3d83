package read

import (
	"math/rand"
	"strings"
	"testing"

	"github.com/leafsql/leafsql/driver/internal/insert"
)

// programs generates bodies of stored programs.
type programs struct{ *rand.Rand }

func (p programs) one(of ...string) string { return of[p.Intn(len(of))] }

func (p programs) expr(depth int) string {
	if depth == 0 {
		return p.one("1", "a", "@x", "'then'", "t.end", "NEW.begin", "`if`", "t.then")
	}
	e := func() string { return p.expr(depth - 1) }
	return p.one(
		"CASE WHEN "+e()+" THEN "+e()+" ELSE "+e()+" END", "CASE "+e()+" WHEN "+e()+" THEN "+e()+" WHEN 2 THEN "+e()+" END",
		"IF("+e()+", "+e()+", "+e()+")", "("+e()+") + "+e(), "REPEAT("+e()+", 2)", "EXISTS (SELECT "+e()+" FROM y FOR UPDATE)")
}

func (p programs) statements(depth int) string {
	return strings.Repeat(p.statement(depth)+"; ", 1+p.Intn(2))
}

func (p programs) statement(depth int) string {
	e := p.expr(2)
	if depth == 0 {
		return p.one("SET @x = "+e, "SELECT "+e+" INTO z", "DROP TABLE IF EXISTS y", "RETURN IF(1,2,3)", "LEAVE l", "EXIT WHEN "+e)
	}
	s := p.statements(depth - 1)
	return p.one(
		"BEGIN "+s+"END", "IF "+e+" THEN "+s+"END IF", "IF "+e+" THEN "+s+"ELSEIF "+e+" THEN "+s+"ELSE "+s+"END IF", "IF "+e+" THEN "+s+"ELSIF "+e+" THEN "+s+"END IF",
		"CASE "+e+" WHEN "+e+" THEN "+s+"WHEN 3 THEN "+s+"ELSE "+s+"END CASE", "CASE WHEN "+e+" THEN "+s+"END CASE", "l: LOOP "+s+"END LOOP l",
		"WHILE "+e+" DO "+s+"END WHILE", "REPEAT "+s+"UNTIL "+e+" END REPEAT", "FOR i IN 1..3 DO "+s+"END FOR", "DECLARE EXIT HANDLER FOR NOT FOUND BEGIN "+s+"END")
}

// TestEndOfProgramIsFound: the end of a stored program is found for any blocks.
func TestEndOfProgramIsFound(t *testing.T) {
	for seed := range int64(3000) {
		p := programs{rand.New(rand.NewSource(seed))}
		text := "CREATE PROCEDURE p(a INT) " + p.statement(p.Intn(4))
		r := programReader(text+"; SELECT 1", "", mariaDB)
		r.next()
		if err := r.ddl("create"); err != nil || r.tok.Pos != len(text) {
			t.Fatalf("%s\nprogram ends at %d, error %v; want %d", text, r.tok.Pos, err, len(text))
		}
	}
}

// TestElsifIsKeywordOnlyInOracleMode: ELSIF is a keyword in sql_mode ORACLE, and a name otherwise.
func TestElsifIsKeywordOnlyInOracleMode(t *testing.T) {
	for _, text := range []string{
		"CREATE PROCEDURE p(elsif INT) BEGIN IF elsif = 1 THEN SET @x = elsif; END IF; SET @y = 2; END",
		"CREATE PROCEDURE p() BEGIN IF @a THEN SET @x = 1; ELSIF @b THEN SET @x = 3; END IF; SET @y = 2; END",
	} {
		r := programReader(text+"; SELECT 1", "", mariaDB)
		r.next()
		if err := r.ddl("create"); err != nil || r.tok.Pos != len(text) {
			t.Errorf("%s\nprogram ends at %d, error %v; want %d", text, r.tok.Pos, err, len(text))
		}
	}
}

// TestDefinerMayHaveAnyName: the name of a definer may be any word, and an index belongs to a table.
func TestDefinerMayHaveAnyName(t *testing.T) {
	for text, want := range map[string]insert.Change{
		"CREATE DEFINER=server@localhost PROCEDURE p() SQL SECURITY INVOKER BEGIN DO 1; INSERT INTO orders (customer) VALUES (1); END": {Program: true},
		"CREATE DEFINER = view@'%' TRIGGER tr BEFORE INSERT ON orders FOR EACH ROW BEGIN DO 1; INSERT INTO orders () VALUES (); END":   {Program: true},
		"CREATE DEFINER=CURRENT_USER() VIEW v AS SELECT 1":                                                                             {Program: true},
		"CREATE UNIQUE INDEX i ON shop.orders (customer)":                                                                              {TableName: insert.TableName{DB: "shop", Table: "orders"}},
		"DROP INDEX `on` ON orders": {TableName: insert.TableName{DB: "", Table: "orders"}},
	} {
		plan, _, err := Parse(text, mariaDB, shop)
		if err != nil || len(plan.Inserts) > 0 || len(plan.Changes) != 1 || plan.Changes[0] != want {
			t.Errorf("Parse(%s) = %+v, %v; want only the change %+v", text, plan, err, want)
		}
	}
}
