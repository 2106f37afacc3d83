package servertest

import (
	"context"
	"database/sql"
	sqldriver "database/sql/driver"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/leafsql/leafsql/driver"
	"github.com/leafsql/leafsql/testutil/mysqltest"
)

// keyLiterals are literals in the place of a key: every kind that means "generate" for an
// AUTO_INCREMENT column, and many that do not.
var keyLiterals = strings.Split(strings.TrimSpace(`
NULL
DEFAULT
0
'0'
'00'
' 0'
'0 '
'  0  '
'+0'
'-0'
-0
+0
+ 7
-7
(0)
((NULL))
( 0 )
(7)
((7))
n'0'
N'7'
-1
'-1'
'7'
'07'
' 7 '
'+7'
999999
'999999'
9223372036854775807
'9223372036854775807'
9223372036854775808
'9223372036854775808'
18446744073709551615
18446744073709551616
-9223372036854775808
99999999999999999999
/* c */ 0
0 /* c */
`), "\n")

// unclearLiterals have a meaning that only the server could decide: they are refused.
var unclearLiterals = strings.Split(strings.TrimSpace(`
@nosuch
@zero
@seven
DEFAULT(id)
0.0
'0.0'
.0
0.
'.0'
'0.'
false
FALSE
true
- 0.0
'0' ''
'0' '0'
'' '0'
'7' '0'
id
ID
t.id
1.5
'1.5'
2.5
'2.5'
-1.5
7.0
'7.0'
7.4999
9223372036854775807.4
-9223372036854775809
`+"`id`"+`
`+"`t`.`ID`"+`
\N
IGNORE
(\N)
'0e0'
'0E5'
0e0
0E5
'.'
'-'
'+'
' '
'	0'
'0	'
'\0'
'\t0'
'0\n'
'0\\'
'\60'
'''0'
0x0
0x00
0x30
0x31
x'00'
x'30'
x''
b'0'
b'1'
b''
0b0
- -0
--0
-0.4
- -7
-'7'
+'7'
-'0'
N''
_utf8mb4'0'
_latin1'7'
_binary'0'
'' ''
''
'abc'
'0abc'
'7abc'
'0x0'
'0x7'
'1e2'
'1e-5'
'inf'
'nan'
"0"
""
"id"
nosuch
cast(0 AS SIGNED)
cast(NULL AS CHAR)
1-1
nullif(1,1)
(SELECT 0)
(SELECT NULL)
(SELECT 7)
0.4
'0.4'
0.49999999999999999999
'0.49999999999999999999'
0.5
'0.5'
-0.5
'-0.5'
2.5e0
'2.5e0'
1e0
1e30
'1e30'
DATE '2024-02-29'
NOW()
'2024-02-29'
/*!50000 0 */
/*!50000 NULL */
0 /*!50000 + 7 */
`), "\n")

// giving is a driver.Valuer that returns v.
type giving struct{ v sqldriver.Value }

func (g giving) Value() (sqldriver.Value, error) { return g.v, nil }

// keyArguments are arguments that may be passed for a key.
var keyArguments = []any{
	nil, 0, int8(0), int64(0), uint(0), uint64(0), 0.0, math.Copysign(0, -1), float32(0), 7.0, 1e15,
	"0", []byte("0"), "00", "-0", "+0", " 0", "0 ", "7", "07", " 7 ", "+7", []byte("7"), strings.Repeat("0", 100), strings.Repeat("0", 70_000) + "7",
	7, int64(math.MaxInt64), uint64(1 << 63), uint64(math.MaxUint64), "9223372036854775807", "9223372036854775808", "18446744073709551615",
	(*int)(nil), new(int), (*string)(nil), sql.NullInt64{}, sql.NullInt64{Valid: true}, sql.NullString{}, sql.NullString{String: "0", Valid: true}, sql.Null[uint64]{},
	giving{nil}, giving{int64(0)}, giving{"0"}, giving{[]byte("7")}, sql.RawBytes("0"), sql.RawBytes(nil),
}

// negativeArguments have a clear meaning if the column is not unsigned.
var negativeArguments = []any{-1, -7.0, "-7", int64(math.MinInt64)}

// unclearArguments have a meaning that only the server could decide: they are refused.
var unclearArguments = []any{
	false, true, 0.4, -0.4, 0.5, -0.5, 1.5, 2.5, 1e18, 1e30, -1.5, -1e30, "0.0", ".0", "0.", "2.5", "-9223372036854775809",
	json.RawMessage(nil), json.RawMessage("7"), "\t0", "0\n", "0e0", "0E7", "0.4", "0.5", "-0.4", "2.5e0", "7abc",
	"0abc", "", []byte{}, "0x0", "abc", "-", ".", " ", "1e2", "1e-5", "inf", "nan", "\x00", "0\x00", "７",
	"2024-02-29", giving{0.4}, json.RawMessage("{}"), time.Time{}, time.Date(2024, 2, 29, 1, 2, 3, 0, time.UTC), []byte{0xff}, []byte{0},
}

// judgeModes are the values of sql_mode that may change what a key means.
var judgeModes = []struct{ mode, only string }{
	{"STRICT_TRANS_TABLES", ""},
	{"", ""},
	{"STRICT_TRANS_TABLES,NO_AUTO_VALUE_ON_ZERO", ""},
	{"NO_AUTO_VALUE_ON_ZERO", ""},
	{"STRICT_ALL_TABLES,ANSI_QUOTES,NO_ZERO_DATE", ""},
	{"STRICT_TRANS_TABLES,NO_BACKSLASH_ESCAPES", ""},
	{"NO_BACKSLASH_ESCAPES", ""},
	{"STRICT_TRANS_TABLES,EMPTY_STRING_IS_NULL", "mariadb"},
	{"EMPTY_STRING_IS_NULL", "mariadb"},
	{"ORACLE", "mariadb"},
	{"ORACLE,STRICT_TRANS_TABLES", "mariadb"},
}

// judgeSample: without -twin.full, TestJudge plays one of this many statements, a different one for each type and mode.
const judgeSample = 24

// TestJudge: a literal or an argument is a key, requests one, or is an error as
// with AUTO_INCREMENT, on both servers, in every sql_mode and in every form of
// statement.
func TestJudge(t *testing.T) {
	for _, target := range mysqltest.Targets(t) {
		for _, typ := range []string{"BIGINT", "BIGINT UNSIGNED", "SMALLINT"} {
			seed := *twinSeed
			if seed == 0 {
				seed = rand.Uint64()
			}
			t.Logf("-twin.seed=%d", seed)
			for i, m := range judgeModes {
				if m.only == "" || m.only == target.Name {
					t.Run(target.Name+"/"+typ+"/"+m.mode, func(t *testing.T) {
						t.Parallel()
						newJudge(t, target, typ, m.mode, seed+1+uint64(i)).run()
					})
				}
			}
		}
	}
}

// A judge compares the plain driver with AUTO_INCREMENT to mysql-leaf on tables
// with and without AUTO_INCREMENT.
type judge struct {
	t        *testing.T
	mode     string
	unsigned bool
	rng      *rand.Rand
	sides    [3]judged
	n        int
}

type judged struct {
	plain, db, interpolating *sql.DB
	counts                   bool // the key is AUTO_INCREMENT
}

// judgeFrom is the first id of leaf_alloc. No case has a key near it.
const judgeFrom = 20_000

func newJudge(t *testing.T, target mysqltest.Target, typ, mode string, seed uint64) *judge {
	params := "?timestamp=1709172000&sql_mode="
	if onVitess() { // it has no SET timestamp
		params = "?sql_mode="
	}
	j := &judge{t: t, mode: mode, unsigned: strings.HasSuffix(typ, "UNSIGNED"), rng: rand.New(rand.NewPCG(seed, 3))}
	for i := range j.sides {
		s := &j.sides[i]
		auto, name, rules := "AUTO_INCREMENT", "mysql", ""
		if i > 0 {
			name, rules = driver.Name, "&leafTables=t:id&leafExplicit=keep"
		}
		if s.counts = i < 2; !s.counts {
			auto = ""
		}
		dsn := target.Database(t)
		s.plain, _ = openOn(t, dsn, "leafTables=none", allocTable, row("t", judgeFrom, 1000),
			fmt.Sprintf("CREATE TABLE t (id %s NOT NULL %s PRIMARY KEY, a INT)", typ, auto), fmt.Sprintf("ALTER TABLE t AUTO_INCREMENT=%d", judgeFrom))
		for _, db := range []struct {
			at     **sql.DB
			params string
		}{{&s.db, ""}, {&s.interpolating, "&interpolateParams=true"}} {
			var err error
			if *db.at, err = sql.Open(name, dsn+params+url.QueryEscape("'"+mode+"'")+rules+db.params); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { (*db.at).Close() })
			(*db.at).SetMaxOpenConns(1)
			if _, err := (*db.at).Exec("SET @zero = 0, @seven = 7"); err != nil {
				notOnThisVersion(t, "sql_mode "+mode, err)
				t.Fatal(err)
			}
		}
	}
	return j
}

func (j *judge) run() {
	j.literals(keyLiterals, false)
	j.literals(unclearLiterals, true)
	j.arguments(keyArguments, false)
	j.arguments(negativeArguments, j.unsigned)
	j.arguments(unclearArguments, true)
	j.t.Logf("%d statements a side", j.n)
}

func (j *judge) literals(literals []string, unclear bool) {
	for _, lit := range literals {
		for _, form := range []string{"INSERT INTO t (id, a) VALUES (%s, 1)", "INSERT INTO t SET a = 1, id = %s", "INSERT INTO t SELECT %s, 1",
			"INSERT INTO t VALUES (%[1]s, 1), (%[1]s, 1)", "INSERT IGNORE INTO t (a, id) VALUES (1, %s)"} {
			j.ask(fmt.Sprintf(form, lit), "text", unclear || j.unsigned && strings.Contains(lit, "-"))
		}
	}
}

func (j *judge) arguments(arguments []any, unclear bool) {
	for _, arg := range arguments {
		for _, way := range []string{"arguments", "prepared", "interpolated"} {
			for _, text := range []string{"INSERT INTO t (id, a) VALUES (?, 1)", "INSERT INTO t (a, id) SELECT 1, ?", "INSERT IGNORE INTO t SET id = ?, a = 1"} {
				j.ask(text, way, unclear, arg)
			}
		}
	}
}

// ask runs a statement on all sides and compares the stored keys.
func (j *judge) ask(text, way string, unclear bool, args ...any) {
	if !*twinFull && j.rng.IntN(judgeSample) > 0 {
		return
	}
	j.n++
	want := j.sides[0].verdict(j.t, text, way, args)
	if strings.HasPrefix(want, "error") { // a key that is not stored moves the AUTO_INCREMENT, perhaps to its end
		j.sides[0].reset(j.t, fmt.Sprintf("ALTER TABLE t AUTO_INCREMENT=%d", judgeFrom))
	}
	if strings.Contains(j.mode, "NO_AUTO_VALUE_ON_ZERO") && strings.Contains(text, "DEFAULT") {
		want = strings.ReplaceAll(want, "stored 0 ", "stored generated ") // the server treats DEFAULT as a 0, which the statement does not contain
	}
	if want == "error 1105" { // Vitess does not parse the literal
		return
	}
	for i, s := range j.sides[1:] {
		if got := s.verdict(j.t, text, way, args); got != want && !(unclear && got == "refused") {
			j.t.Errorf("%s %.60v, %s, AUTO_INCREMENT %v: %s, want %s", text, args, way, i == 0, got, want)
		}
	}
}

func (s *judged) verdict(t *testing.T, text, way string, args []any) string {
	ctx, db := context.Background(), s.db
	if way == "interpolated" {
		db = s.interpolating
	}
	var err error
	if way == "prepared" {
		var st *sql.Stmt
		if st, err = db.PrepareContext(ctx, text); err == nil {
			_, err = st.Exec(args...)
			st.Close()
		}
	} else {
		_, err = db.Exec(text, args...)
	}
	var me *mysql.MySQLError
	switch {
	case errors.As(err, &me):
		return fmt.Sprintf("error %d", me.Number)
	case errors.Is(err, driver.ErrRefused):
		return "refused"
	case err != nil:
		return err.Error()
	}
	rows, err := s.plain.Query("SELECT id FROM t ORDER BY id")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	verdict, reset := "", "DELETE FROM t"
	for rows.Next() {
		var id string
		if err := rows.Scan(&id); err != nil {
			t.Fatal(err)
		}
		if k, err := strconv.Atoi(id); err == nil && judgeFrom <= k && k < math.MaxInt16 {
			id = "generated"
		} else if s.counts && (err != nil || k >= math.MaxInt16) { // AUTO_INCREMENT moves above it
			reset = fmt.Sprintf("TRUNCATE t; ALTER TABLE t AUTO_INCREMENT=%d", judgeFrom)
		}
		verdict += "stored " + id + " "
	}
	s.reset(t, reset)
	return verdict
}

func (s *judged) reset(t *testing.T, texts string) {
	t.Helper()
	for text := range strings.SplitSeq(texts, "; ") {
		if _, err := s.plain.Exec(text); err != nil {
			t.Fatal(err)
		}
	}
}

// TestNonzeroValueIsKey: a value that is not 0 in the key column's type is a key.
func TestNonzeroValueIsKey(t *testing.T) {
	for _, server := range mysqltest.Targets(t) {
		for typ, keys := range map[string][]any{
			"VARCHAR(40)":   {"00", "0.1", "0e12345", "-0", "1e-9", "000"},
			"DECIMAL(30,2)": {"0.25", 0.35},
		} {
			plain, leaf := openOn(t, server.Database(t), "leafTables=t", allocTable, row("t", notByUs, 1000), "CREATE TABLE t (id "+typ+" PRIMARY KEY, a INT)")
			for i, key := range keys {
				if _, err := leaf.Exec("INSERT INTO t (id, a) VALUES (?, ?)", key, i); err != nil {
					t.Errorf("INSERT of key %v: error %v, want none", key, err)
				}
				var got string
				if err := plain.QueryRow("SELECT id FROM t WHERE a = ?", i).Scan(&got); err != nil || got != fmt.Sprint(key) {
					t.Errorf("%s, %s: stored key = %s, error %v; want %v", server.Name, typ, got, err, key)
				}
			}
		}
	}
}
