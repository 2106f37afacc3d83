package servertest

import (
	"bytes"
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

// A twinColumn is a column that the twins' statements fill.
type twinColumn struct {
	name, typ string
	only      string // name of the only server to run on; empty for both
}

// read returns an expression for the column's bytes.
func (c *twinColumn) read() string {
	if strings.Contains(c.typ, "CHAR") || strings.Contains(c.typ, "TEXT") || strings.HasPrefix(c.typ, "ENUM") || strings.HasPrefix(c.typ, "SET") || strings.HasPrefix(c.typ, "VECTOR") {
		return "HEX(v)"
	}
	return "v"
}

var twinColumns = []twinColumn{
	{"tiny", "TINYINT", ""}, {"utiny", "TINYINT UNSIGNED", ""}, {"small", "SMALLINT", ""}, {"medium", "MEDIUMINT", ""}, {"int", "INT", ""},
	{"zint", "INT(8) UNSIGNED ZEROFILL", ""}, {"big", "BIGINT", ""}, {"ubig", "BIGINT UNSIGNED", ""}, {"bool", "BOOL", ""},
	{"dec2", "DECIMAL(10,2)", ""}, {"dec8", "DECIMAL(20,8)", ""}, {"dec30", "DECIMAL(65,30)", ""}, {"udec", "DECIMAL(5,0) UNSIGNED", ""},
	{"float", "FLOAT", ""}, {"double", "DOUBLE", ""}, {"float73", "FLOAT(7,3)", ""}, {"bit1", "BIT(1)", ""}, {"bit12", "BIT(12)", ""}, {"bit64", "BIT(64)", ""},
	{"date", "DATE", ""}, {"time", "TIME", ""}, {"time6", "TIME(6)", ""}, {"datetime", "DATETIME", ""}, {"datetime6", "DATETIME(6)", ""},
	{"stamp", "TIMESTAMP", ""}, {"stamp3", "TIMESTAMP(3)", ""}, {"year", "YEAR", ""},
	{"char10", "CHAR(10)", ""}, {"charl", "CHAR(10) CHARACTER SET latin1", ""}, {"varchar", "VARCHAR(20)", ""}, {"varcharl", "VARCHAR(20) CHARACTER SET latin1", ""},
	{"varcharb", "VARCHAR(20) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin", ""}, {"varchar16", "VARCHAR(20) CHARACTER SET utf16", ""}, {"varchar2k", "VARCHAR(2000)", ""},
	{"binary8", "BINARY(8)", ""}, {"varbin", "VARBINARY(30)", ""}, {"tinytext", "TINYTEXT", ""}, {"text", "TEXT", ""}, {"longtext", "LONGTEXT", ""},
	{"tinyblob", "TINYBLOB", ""}, {"blob", "BLOB", ""}, {"longblob", "LONGBLOB", ""},
	{"enum", "ENUM('a','b','c')", ""}, {"set", "SET('a','b','c','ü')", ""}, {"json", "JSON", ""}, {"geometry", "GEOMETRY", ""},
	{"point", "POINT SRID 4326", "mysql"}, {"vector", "VECTOR(3)", "mysql"}, {"uuid", "UUID", "mariadb"}, {"inet4", "INET4", "mariadb"}, {"inet6", "INET6", "mariadb"},
}

// twinSince has the minimum versions for some types.
var twinSince = map[string]int{"VECTOR(3)": 90000, "UUID": 100700, "INET4": 101000, "INET6": 100500}

// twinNotOnTiDB are the types that TiDB lacks.
var twinNotOnTiDB = []string{"GEOMETRY", "POINT SRID 4326", "VARCHAR(20) CHARACTER SET utf16"}

// twinSource creates the table that sources read.
var twinSource = []string{
	`CREATE TABLE s (id INT PRIMARY KEY, i INT, u BIGINT UNSIGNED, d DECIMAL(20,6), f DOUBLE, fl FLOAT, c VARCHAR(40), l VARCHAR(40) CHARACTER SET latin1, x VARBINARY(40),
		dt DATETIME(6), da DATE, ti TIME(3), ts TIMESTAMP(6) NULL, y YEAR, e ENUM('a','b','c'), st SET('a','b','c'), b BIT(10), j JSON, g GEOMETRY, t MEDIUMTEXT)`,
	`INSERT INTO s VALUES
		(1, 7, 9007199254740993, 250000.01, 1e-5, 1.1, 'abc', 'äb', x'00ff41', '2024-02-29 23:59:59.999999', '2024-02-29', '10:20:30.456', '2024-02-29 12:00:00.5', 2024, 'b', 'a,c', 5,
			'{"a": [1, 2.50]}', ST_GeomFromText('POINT(1 2)'), REPEAT('x', 70000)),
		(2, 0, 18446744073709551615, -3.5, 1.7e308, -0.1, '12.5', '0', '5', '1000-01-01', '0000-00-00', '-838:59:59', '1970-01-02', 1901, 'a', '', 1023, '"x"', ST_GeomFromText('LINESTRING(0 0, 1 1)'), ''),
		(3, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)`,
}

// twinExpressions are the expressions that statements write to the column, each for all types.
var twinExpressions = strings.Split(strings.TrimSpace(`
1
-1
0
127
128
255.5
1.5
-0.5
2.5
1e3
1/3
10/3*3
1/0
PI()
18446744073709551615
-9223372036854775808
99999999999999999999.5
1e308
1e-10
5 DIV 2
-7 % 3
~0
1 << 63
ROUND(2.675, 2)
TRUNCATE(-1.999, 1)
FLOOR(-1.5)
SQRT(2)
POW(2, 63)
RAND(3)
CRC32('x')
GREATEST(1, '2', 3.5)
COALESCE(NULL, 1.5, 'x')
IF(1, 1.10, 2)
CASE WHEN 1 THEN 'a' ELSE 1 END
NULLIF(1, 1)
NULL
TRUE
1 = 1
@u
@unset
''
'1'
' 12 '
'12abc'
'abc'
'a,b'
'c'
'ä€😀'
'0000-00-00'
'2024-02-29'
'2024-02-30'
'2024-01-02 03:04:05.678901'
'12:34:56.789'
'192.168.1.1'
'::1'
'f81d4fae-7dec-11d0-a765-00a0c91e6bf6'
'{"a": 1}'
'[1, 2.50, 3]'
N'x'
_latin1 x'e4'
_binary 'a\0b'
x'ff'
x'4142'
b'101'
0xffff
20240229
DATE '2024-02-29'
TIME '10:11:12'
TIMESTAMP '2024-02-29 01:02:03.456789'
NOW(6)
CURDATE()
CURTIME(3)
'2024-01-31' + INTERVAL 1 MONTH
MAKETIME(10, 11, 12.5)
STR_TO_DATE('2024', '%Y')
REPEAT('x', 300)
REPEAT('ü', 70000)
CAST(1.0 AS CHAR)
CAST('abc' AS BINARY(5))
CAST('1.234567' AS DECIMAL(20,6))
CONCAT(1.50, 2e1)
CONVERT('ä' USING latin1)
MD5('x')
UNHEX('00ff')
SUBSTRING('abcdef', 2, 3)
JSON_OBJECT('a', 1.50)
JSON_ARRAY(1, 'x', NULL)
ST_GeomFromText('POINT(1 2)')
ST_GeomFromText('POINT(1 2)', 4326)
s.i
s.u
s.d
s.f
s.fl
s.c
s.l
s.x
s.dt
s.da
s.ti
s.ts
s.y
s.e
s.st
s.b
s.j
s.g
s.t
s.i / s.d
s.d / 7
s.f * 3
s.u + 0
s.e + 0
s.st + 0
s.b + 0
s.dt + 0
s.ti + 0
s.i = 7
CONCAT(s.c, s.x)
COALESCE(s.c, s.i)
IF(s.id = 2, s.d, s.f)
DATE_ADD(s.dt, INTERVAL s.id DAY)
LEFT(s.c, s.id)
CAST(s.d AS CHAR)
s.c COLLATE utf8mb4_bin
HEX(s.x)
(SELECT MAX(q.c) FROM s q)
(SELECT AVG(q.d) FROM s q)
SUM(s.d) OVER (ORDER BY s.id)
`), "\n")

// twinClock are the expressions that read the clock.
var twinClock = []string{"NOW(6)", "CURDATE()", "CURTIME(3)"}

// twinArguments has one argument of each kind that applications pass.
var twinArguments = []any{
	nil, 42, -1, uint64(1<<63 + 1), 1.5, 1e300, true, "abc", "ü😀", "12.50", "", "2024-02-29 01:02:03.4", "a\x00b'\\c", []byte{0xff, 0xfe, 0}, []byte{},
	strings.Repeat("x", 100_000), bytes.Repeat([]byte{0xc3}, 70_000), time.Date(2024, 2, 29, 1, 2, 3, 456789000, time.UTC), json.RawMessage(`{"a": 1}`), (*int)(nil), sql.NullString{},
}

// withArgument are expressions with an argument.
var withArgument = []string{"?", "CONCAT(?, 'x')", "? + 1", "COALESCE(?, s.c)", "IF(1, ?, 1.5)", "CAST(? AS CHAR)", "? / 3", "LEFT(?, 2)"}

// literal returns an argument as an SQL literal.
func literal(v any) string {
	switch v := v.(type) {
	case string:
		return "'" + strings.NewReplacer("'", "''", `\`, `\\`, "\x00", `\0`).Replace(v) + "'"
	case []byte:
		return fmt.Sprintf("x'%x'", v)
	case json.RawMessage:
		return literal(string(v))
	case time.Time:
		return "'" + v.Format("2006-01-02 15:04:05.999999") + "'"
	case bool, int, uint64, float64:
		return fmt.Sprint(v)
	}
	return "NULL"
}

// A twinShape is a form of statement. {N} is the row's number, {E} the
// expression. Expressions that read the source need a shape with a source.
type twinShape struct {
	text   string
	source bool   // it reads the table s
	only   string // name of the only server to run on; empty for both
}

var twinShapes = []twinShape{
	{"(k, n, v) SELECT {K}, {N}, {E} FROM s ORDER BY s.id", true, ""}, // first shape: runs with everything
	{"(k, n, v) SELECT {K}, 1, {E}", false, ""},                       // second shape: as well
	{"(v, n, k) SELECT {E}, {N}, {K} FROM s ORDER BY s.id DESC", true, ""},
	{"(k, n, v) SELECT {K}, 1, {E} FROM DUAL WHERE NOT EXISTS (SELECT 1 FROM {T} q WHERE q.k = {K})", false, ""},
	{"(k, n, v) SELECT {K}, 1, {E} FROM DUAL WHERE EXISTS (SELECT 1 FROM {T} q WHERE q.k = {K}) LIMIT 1", false, ""},
	{"(k, n, v) SELECT {K}, s.id, {E} FROM s WHERE s.id = 1 UNION ALL SELECT {K}, s.id, {E} FROM s WHERE s.id > 1 ORDER BY 2", true, ""},
	{"(k, n, v) SELECT {K}, s.id, {E} FROM s UNION SELECT {K}, s.id, {E} FROM s ORDER BY 2", true, ""},
	{"(k, n, v) WITH w AS (SELECT s.id AS n, {E} AS e FROM s) SELECT {K}, w.n, w.e FROM w ORDER BY w.n", true, ""},
	{"(k, n, v) SELECT {K}, s.id, MAX({E}) FROM s GROUP BY s.id ORDER BY s.id", true, ""},
	{"(k, n, v) SELECT {K}, COUNT(*), {E} WHERE FALSE", false, ""},
	{"(k, n, v) SELECT {K}, ROW_NUMBER() OVER (ORDER BY s.id DESC), {E} FROM s ORDER BY s.id", true, ""},
	{"(k, n, v) SELECT {K}, {N}, {E} FROM s ORDER BY s.id LIMIT 1, 2", true, ""},
	{"(k, n, v) SELECT {K}, {N}, {E} FROM s WHERE s.id < 3 ORDER BY s.id FOR UPDATE", true, ""},
	{"SELECT NULL, {K}, {N}, {E} FROM s ORDER BY s.id", true, ""},
	{"SELECT NULL, {K}, 1, {E}", false, ""},
	{"(k, n, v) SELECT q.k, q.n, q.e FROM (SELECT {K} k, s.id n, {E} e FROM s) q ORDER BY q.n", true, ""},
	{"(k, n, v) (SELECT {K}, {N}, {E} FROM s ORDER BY s.id)", true, ""},
	{"(k, n, v) SELECT {K}, r.id, {E} FROM s JOIN s r ON r.id >= s.id WHERE s.id = 1 ORDER BY r.id DESC", true, ""},
	{"(id, k, n, v) SELECT IF(s.id = 2, {K} * 10 + 100000, NULL), {K}, {N}, {E} FROM s ORDER BY s.id", true, ""},
	{"(k, v, id, n) SELECT {K}, {E}, ELT(s.id, '0', {K} * 10 + 100000, '-{K}'), {N} FROM s ORDER BY s.id", true, ""},
	{"(id, k, n, v) SELECT {K} * 10 + 100000 + s.id, {K}, {N}, {E} FROM s ORDER BY s.id", true, ""},
	{"(k, n, v) SELECT DISTINCT {K}, s.id, {E} FROM s ORDER BY s.id", true, ""},
	// Not {E}: MySQL stores the rows of a select that reads the target in an
	// internal temporary table, where a DOUBLE becomes another string.
	{"(k, n, v) SELECT {K}, q.n + 5, q.v FROM {T} q WHERE q.k = -2 ORDER BY q.id", false, ""},
	{"(k, n, v) SELECT {K}, {N}, {E} FROM s WHERE s.id > 9", true, ""},
	{"(id, k, n, v) VALUES (NULL, {K}, 1, {E}), (DEFAULT, {K}, 2, {E}), ({K}, {K}, 3, {E})", false, ""},
	{"(v, id, n, k) VALUES ({E}, NULL, 1, {K})", false, ""},
	{"VALUES (NULL, {K}, 1, {E})", false, ""},
	{"SET id = NULL, k = {K}, n = 1, v = {E}", false, ""},
	{"SET v = {E}, id = {K}, k = {K}, n = 1", false, ""},
	{"(k, n, v) VALUES ({K}, 1, {E}) UNION ALL VALUES ({K}, 2, {E})", false, "mariadb"},
	{"(k, n, v) VALUES ROW({K}, 1, {E}), ROW({K}, 2, {E}) LIMIT 2", false, "mysql"},
	{"(k, n, v) TABLE (SELECT 1)", false, "mysql"},
}

// twinVerbs are ways to write rows. n is the row's number in its source,
// %s the rest of the statement.
var twinVerbs = []struct{ name, text, n, only string }{
	{"insert", "INSERT INTO {T} %s", "s.id", ""},
	{"ignore", "INSERT IGNORE INTO {T} %s", "s.id % 2", ""},
	{"replace", "REPLACE INTO {T} %s", "s.id % 2", ""},
	{"upsert", "INSERT INTO {T} %s ON DUPLICATE KEY UPDATE v = VALUES(v), n = VALUES(n) + 10", "s.id % 2", ""},
	{"returning", "INSERT INTO {T} %s RETURNING id, n, v", "s.id", "mariadb"},
}

var twinModes = []string{
	"STRICT_TRANS_TABLES,ERROR_FOR_DIVISION_BY_ZERO",
	"",
	"PAD_CHAR_TO_FULL_LENGTH",
	"STRICT_ALL_TABLES,NO_ZERO_DATE,NO_ZERO_IN_DATE,ERROR_FOR_DIVISION_BY_ZERO",
}

// twinCases returns all cases of a column. Each case's write function sets its text. If clock is false, no case
// reads the clock.
func twinCases(column *twinColumn, server string, clock bool) (cases []twinCase) {
	add := func(shape, verb int, expression string, arg any, mode string, first bool) {
		s, v := twinShapes[shape], twinVerbs[verb]
		reads := strings.Contains(expression, "s.")
		if s.only != "" && s.only != server || v.only != "" && v.only != server || reads && !s.source || !clock && slices.Contains(twinClock, expression) {
			return
		}
		// Rotate the settings, so that each is combined with everything.
		n := len(cases)
		cases = append(cases, twinCase{matrix: first && shape < 2 && verb == 0, verb: v.name, mode: mode, sqlMode: twinModes[n%4], notNull: n/4%2 == 1, auto: n/8%2 == 1,
			selects: strings.Contains(s.text, "SELECT") || strings.Contains(s.text, "UNION") || strings.Contains(s.text, "VALUES ROW"),
			write: func(c *twinCase) {
				c.text = strings.NewReplacer("{E}", expression, "{N}", v.n).Replace(fmt.Sprintf(v.text, s.text))
				for range strings.Count(c.text, "?") {
					c.args = append(c.args, arg)
				}
				if mode == "text" {
					c.text, c.args = strings.ReplaceAll(c.text, "?", literal(arg)), nil
				}
			}})
	}
	for shape := range twinShapes {
		for verb := range twinVerbs {
			for i, e := range twinExpressions {
				for _, mode := range []string{"text", "prepared"} {
					switch {
					case shape < 2 && verb < 2: // with all settings
						for i := range 8 {
							add(shape, verb, e, nil, mode, i == 0)
						}
					case (i+len(column.name)+shape+verb)%7 == 0: // with everything in some column
						add(shape, verb, e, nil, mode, false)
					}
				}
			}
			for i, arg := range twinArguments {
				for j, e := range withArgument {
					for _, mode := range []string{"text", "arguments", "prepared", "interpolated"} {
						if shape < 2 && verb < 2 || (i+j+len(column.name)+shape+verb)%11 == 0 {
							add(shape, verb, e, arg, mode, true)
						}
					}
				}
			}
		}
	}
	return cases
}
