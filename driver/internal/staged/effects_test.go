package staged

import (
	"fmt"
	"strings"
	"testing"

	"github.com/leafsql/leafsql/driver/internal/insert"
)

var mariaDB = &insert.Settings{SessionKnown: true, MariaDB: true, Version: 101119}

// TestFindEffectsListsReadsAndWrites: findEffects returns what a piece of SQL reads and changes apart from its rows.
func TestFindEffectsListsReadsAndWrites(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"SELECT f(a), shop.g(b), `h` (1), COUNT (1), COUNT(1) FROM s", "calls [.f shop.g .h .COUNT] tables [.s]"},
		{"BEGIN UPDATE audit SET n = n + 1; RETURN 1; END", "writes tables [.audit]"},
		{"UPDATE IGNORE audit SET n = 1", "writes tables [.audit]"},
		{"UPDATE LOW_PRIORITY shop.audit a SET n = 1", "writes tables [shop.audit]"},
		{"INSERT/**/INTO audit (a, b) VALUES (1, 2)", "writes tables [.audit]"},
		{"insert -- x\n into audit set a = b", "writes tables [.audit]"},
		{"REPLACE DELAYED audit VALUES (1)", "writes tables [.audit]"},
		{"UPDATE three t JOIN audit a ON a.id = t.id SET a.n = 1", "writes tables [.three .audit]"},
		{"UPDATE three, audit SET n = 1", "writes tables [.three .audit]"},
		{"DELETE a, b FROM audit a, log AS b WHERE a.c = b.d", "writes tables [.a .b .audit .log]"},
		{"DELETE QUICK FROM audit", "writes tables [.audit]"},
		{"TRUNCATE audit", "writes tables [.audit]"},
		{"TRUNCATE TABLE audit", "writes tables [.audit]"},
		{"LOAD DATA INFILE 'x' INTO TABLE audit", "writes tables [.audit]"},
		{"SELECT (SELECT a FROM (SELECT 1 FROM x WHERE y) d, audit)", "tables [.x .audit]"},
		{"SELECT 1 FROM ((a JOIN b USING (id)), c) LEFT JOIN d ON (d.x = a.x), log", "tables [.a .b .c .d .log]"},
		{"CALL p", "writes calls [.p]"},
		{"CALL shop.p(1, @x)", "writes assigns calls [shop.p] vars [@x]"},
		{"SELECT REPLACE(a, 'x', 'y'), INSERT(a, 1, 1, 'b'), TRUNCATE(1, 2)", ""},
		{"SELECT a FROM s FOR UPDATE", "tables [.s]"},
		{"SELECT @n := 1", "assigns vars [@n]"},
		{"SELECT @`n m`:=1", "assigns vars [@n m]"},
		{"SET @`x` = 1, @'Y' := 2", "assigns vars [@x @y]"},
		{"UPDATE (three x, (audit y)) SET y.n = 1", "writes tables [.three .audit]"},
		{"UPDATE (SELECT 1 c) d JOIN audit y SET y.n = d.c", "writes tables [.audit]"},
		{"RETURN `update` (1)", "calls [.update]"},
		{"SET @x = 1", "assigns vars [@x]"},
		{"SELECT a INTO @x FROM s", "assigns tables [.s] vars [@x]"},
		{"GET DIAGNOSTICS @n = ROW_COUNT", "before ROW_COUNT() assigns vars [@n]"},
		{"SELECT @a, @B", "vars [@a @b]"},
		{"RETURN ROW_COUNT()", "before ROW_COUNT()"},
		{"RETURN `found_rows` ()", "before FOUND_ROWS()"},
		{"SET a = sql%rowcount", "before SQL%ROWCOUNT"},
		{"RETURN @@session.autocommit", "before @@autocommit"},
		{"UPDATE stats SET row_count = row_count + 1", "writes tables [.stats]"},
		{"RETURN LAST_INSERT_ID()", "reads id"},
		{"RETURN LAST_INSERT_ID(5)", "reads id sets id"},
		{"RETURN @@identity", "reads id"},
		{"SELECT NOW()", "clock"},
		{"SELECT NEXTVAL(q), NEXT VALUE FOR q", "tables [.q]"},
		{"CREATE TEMPORARY TABLE x (a INT)", "temporary tables [.x]"},
		{"INSERT INTO audit (table_name, row_id) VALUES ('orders', NEW.id)", "writes tables [.audit]"},
	} {
		e := findEffects(mariaDB.Scanner(c.text))
		var got []string
		if e.PreviousCall != "" {
			got = append(got, "before "+e.PreviousCall)
		}
		for _, f := range []struct {
			effect insert.Effect
			name   string
		}{{insert.ReadsID, "reads id"}, {insert.SetsID, "sets id"}, {insert.ReadsClock, "clock"}, {insert.Writes, "writes"}, {insert.Assigns, "assigns"}, {insert.MakesTemporary, "temporary"}} {
			if e.Kinds.HasAny(f.effect) {
				got = append(got, f.name)
			}
		}
		if e.Calls != nil {
			got = append(got, fmt.Sprint("calls ", e.Calls))
		}
		if e.Tables != nil {
			got = append(got, fmt.Sprint("tables ", e.Tables))
		}
		if e.Vars != nil {
			got = append(got, fmt.Sprint("vars ", e.Vars))
		}
		if s := strings.Join(got, " "); s != c.want {
			t.Errorf("%s\ngot  %s\nwant %s", c.text, s, c.want)
		}
	}
	routine := mariaDB.Scanner("CREATE DEFINER=`root`@`localhost` FUNCTION `f`(x INT) RETURNS int(11) BEGIN RETURN g(x); END")
	skipHeader(&routine)
	if e := findEffects(routine); fmt.Sprint(e.Calls, e.Vars) != "[.f .g] []" {
		t.Errorf("effects of a routine: calls %v, variables %v; want [.f .g] and []", e.Calls, e.Vars)
	}
}

// TestSetsKeyFindsAssignmentsOfKey: SetsKey reports whether a trigger may set the key.
func TestSetsKeyFindsAssignmentsOfKey(t *testing.T) {
	for body, want := range map[string]bool{
		"SET NEW.id = 5": true,
		"BEGIN SET @a = 1, NEW.`ID` = (SELECT 1); END":                 true,
		"BEGIN IF NEW.id = 0 THEN SET NEW.a = NEW.id; END IF; END":     false,
		"SET NEW.a = 5, @x = NEW.id":                                   false,
		"BEGIN IF 1 THEN SET new . id := UUID_SHORT(); END IF; END":    true,
		"UPDATE t SET a = NEW.id":                                      false,
		"SET NEW.a = IF(1, 2, NEW.id), NEW.b = 3":                      false,
		"BEGIN SELECT n INTO NEW.id FROM cnt; END":                     true,
		"BEGIN SELECT NEW.id INTO @x; SELECT NEW.id FROM cnt; END":     false,
		"BEGIN CALL p(1, NEW.id); END":                                 true,
		"BEGIN :NEW.id := 5; END":                                      true,
		"SET NEW.a = CASE WHEN 1 THEN 2 ELSE 3 END, NEW.id = 5":        true,
		"BEGIN UPDATE cnt SET n = n + 1; SET NEW.id = (SELECT 1); END": true,
	} {
		if e := findEffects(insert.Settings{}.Scanner(body)); e.SetsKey("id") != want {
			t.Errorf("SetsKey(%s) = %v, want %v", body, !want, want)
		}
	}
}
