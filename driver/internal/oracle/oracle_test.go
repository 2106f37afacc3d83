package oracle

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/pingcap/tidb/pkg/parser"
	"github.com/pingcap/tidb/pkg/parser/ast"
	"github.com/pingcap/tidb/pkg/parser/format"
	_ "github.com/pingcap/tidb/pkg/parser/test_driver"

	"github.com/leafsql/leafsql/driver/internal/insert"
	"github.com/leafsql/leafsql/driver/internal/insert/inserttest"
	"github.com/leafsql/leafsql/driver/internal/insert/read"
)

var orders = &insert.Table{
	Name: insert.TableName{DB: "shop", Table: "orders"}, Key: "id", Columns: []string{"id", "customer", "total"},
	IntegerKey: true, IDWay: insert.IDInText, UpdatesID: true,
}

func lookup(db, name string) (*insert.Table, error) {
	if name == "orders" && (db == "" || db == "shop") {
		return orders, nil
	}
	return nil, nil
}

var mode = insert.Settings{SessionKnown: true, Version: 80035}

// anything stages every statement: TiDB judges none of the stages.
type anything struct{}

func (anything) Stage(*insert.Insert, string, string) error { return nil }
func (anything) ReadsID(string, string) (bool, error)       { return false, nil }

// judge fails the test unless TiDB reads the same statements in a query and in the filled query, except
// for the keys.
func judge(t *testing.T, p *parser.Parser, text string) {
	t.Helper()
	if !utf8.ValidString(text) {
		return // TiDB trims bytes that are white space in latin1
	}
	before, _, err := p.Parse(text, "", "")
	if err != nil {
		return // TiDB does not support row aliases, RETURNING and MariaDB's syntax
	}
	if strings.Contains(text, "/*!") || strings.Contains(text, "/*T!") || strings.Contains(text, "/*M!") || strings.Contains(text, `\N`) {
		return // TiDB runs other version comments than a server does, and supports \N
	}
	plan, unknown, err := read.Parse(text, mode, read.Schema{Table: lookup, Stager: anything{}})
	if _, refused := err.(*insert.Refusal); refused {
		return
	}
	if err != nil || unknown {
		t.Fatalf("Parse(%q): unknown %v, error %v; want a plan", text, unknown, err)
	}
	if plan.Cut > 0 {
		judge(t, p, text[:plan.Cut])
		judge(t, p, text[plan.Cut:])
		return
	}
	if plan.Results != len(before) && plan.Results != len(before)+1 { // TiDB drops comments; a server returns a result for one
		t.Fatalf("%q: %d statements, want the %d that TiDB reads", text, plan.Results, len(before))
	}
	fills := make([]insert.Block, len(plan.Inserts))
	for i, in := range plan.Inserts {
		if in.Staging != nil {
			return
		}
		fills[i] = insert.Block{First: 201, N: in.RowsWithoutKey + len(in.ArgKeys)}
	}
	checkUnplanned(t, text, plan, before)
	filled := plan.Template(fills).Text
	after, _, err := p.Parse(filled, "", "")
	if err != nil {
		t.Fatalf("%q: error of TiDB for the filled query = %v, want none\n%q", text, err, filled)
	}
	if len(after) != len(before) {
		t.Fatalf("%q: %d statements in the filled query, want %d:\n%q", text, len(after), len(before), filled)
	}
	for _, in := range plan.Inserts {
		a, ok := before[in.Statement].(*ast.InsertStmt)
		if !ok || a.Select != nil {
			return // LOAD DATA, VALUES ROW(…)
		}
		b := after[in.Statement].(*ast.InsertStmt)
		rows := len(a.Lists)
		if a.Setlist {
			rows = 1
		}
		if rows != in.Rows || a.IsReplace != (in.Duplicates == insert.Replace) || a.IgnoreErr != (in.Duplicates == insert.Ignore || in.Duplicates == insert.UpdateOrIgnore) || (len(a.OnDuplicate) > 0) != (in.Duplicates >= insert.Update) {
			t.Fatalf("%q: statement = %+v, want that of TiDB", text, in)
		}
		withoutKey(a, in)
		withoutKey(b, in)
		if x, y := restore(a), restore(b); x != y {
			t.Fatalf("%q:\nfilled query in TiDB %s\nwant %s\n%q", text, y, x, filled)
		}
		before[in.Statement], after[in.Statement] = nil, nil
	}
	for i := range before {
		if before[i] != nil && restore(before[i]) != restore(after[i]) {
			t.Fatalf("%q: statement %d changed, want it unchanged:\n%q", text, i, filled)
		}
	}
}

// checkUnplanned fails the test if TiDB reads a row without a key in a statement that is not in the
// plan.
func checkUnplanned(t *testing.T, text string, plan *insert.Plan, statements []ast.StmtNode) {
	t.Helper()
	db := ""
	for i, s := range statements {
		if use, ok := s.(*ast.UseStmt); ok {
			db = use.DBName
		}
		in, ok := s.(*ast.InsertStmt)
		if !ok || slices.ContainsFunc(plan.Inserts, func(p insert.Insert) bool { return p.Statement == i }) {
			continue
		}
		name, ok := in.Table.TableRefs.Left.(*ast.TableSource).Source.(*ast.TableName)
		if !ok || name.Name.O != "orders" {
			continue
		}
		if in := cmp.Or(name.Schema.O, db); in != "" && in != "shop" {
			continue
		}
		width := len(in.Columns)
		if width == 0 && len(in.Lists) > 0 && len(in.Lists[0]) > 0 {
			width = len(orders.Columns)
		}
		if slices.ContainsFunc(in.Lists, func(row []ast.ExprNode) bool { return len(row) != width }) {
			continue // the server returns an error
		}
		at := keyAt(in)
		for _, row := range in.Lists {
			if at < 0 || at >= len(row) || isNull(row[at]) {
				t.Fatalf("%q: statement %d has no key to fill in TiDB, want one", text, i)
			}
		}
	}
}

func isNull(e ast.ExprNode) bool {
	switch restore(e) {
	case "NULL", "0", "DEFAULT", "FALSE":
		return true
	}
	return false
}

// keyAt returns the index of the key in a row, or -1.
func keyAt(s *ast.InsertStmt) int {
	if len(s.Columns) == 0 && !s.Setlist {
		return 0
	}
	return slices.IndexFunc(s.Columns, func(c *ast.ColumnName) bool { return c.Name.L == "id" })
}

// withoutKey removes from a statement the parts that filling may change: the key's column and values,
// the column list if it is the table's, and the upsert's marker.
func withoutKey(s *ast.InsertStmt, in insert.Insert) {
	at := keyAt(s)
	if at >= 0 {
		for i, row := range s.Lists {
			if len(row) > 0 {
				s.Lists[i] = slices.Delete(row, at, at+1)
			}
		}
		if len(s.Columns) > 0 {
			s.Columns = slices.Delete(s.Columns, at, at+1)
		}
	}
	if len(s.Columns) == 2 && s.Columns[0].Name.L == "customer" && s.Columns[1].Name.L == "total" && !s.Setlist {
		s.Columns = nil
	}
	if s.Setlist && len(s.Columns) == 0 {
		s.Lists, s.Setlist = nil, false
	}
	if in.Update >= insert.RowUpdate {
		s.OnDuplicate = slices.DeleteFunc(s.OnDuplicate, func(a *ast.Assignment) bool { return a.Column.Name.L == "id" })
	}
}

func restore(n ast.Node) string {
	var b strings.Builder
	if err := n.Restore(format.NewRestoreCtx(format.DefaultRestoreFlags, &b)); err != nil {
		return err.Error()
	}
	return b.String()
}

func TestTiDBReadsCorpusTheSame(t *testing.T) {
	p := parser.New()
	for _, text := range inserttest.Corpus(t, "../insert/read/testdata") {
		judge(t, p, text)
	}
}

func TestTiDBReadsGeneratedTextsTheSame(t *testing.T) {
	p := parser.New()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	g := inserttest.NewGenerator(seed)
	read := 0
	for range 20000 {
		text := g.Text()
		if _, _, err := p.Parse(text, "", ""); err == nil {
			read++
		}
		judge(t, p, text)
	}
	if read < 15000 {
		t.Errorf("TiDB read %d of 20000 texts, want at least 15000", read)
	}
}

func FuzzJudge(f *testing.F) {
	for _, text := range inserttest.Corpus(f, "../insert/read/testdata") {
		f.Add(text)
	}
	p := parser.New()
	f.Fuzz(func(t *testing.T, text string) { judge(t, p, text) })
}
