//go:build unix

package clients

import "regexp"

// A difference is what a line is through the proxy if it is not what it is without.
type difference struct{ direct, through string }

// The differences that are expected. The pages for users say them of Go's driver, too.
var differences = []struct {
	why   string
	lines []difference
}{
	{"each statement of a text is sent by itself, so that an error quotes no other", []difference{
		{`^(several, syntax: .* near 'bad); .*(' at line 1)`, `$1$2`},
	}},
	{"of a row that an upsert leaves as it is the server says no id, and leafsql says its own", []difference{
		{`^(upsert, same: 1) \[\]`, `$1 [1]`},                               // JDBC
		{`^(upsert, same: affected \d id) 0`, `$1 1`},                       // Python
		{`^(upsert: 0) 0`, `$1 1`},                                          // Ruby
		{`^(upsert: .*"insertId":)0`, `${1}1`},                              // Node
		{`^(upsert, prepared: .*"insertId":)0`, `${1}4`},                    // the same
		{`^(upsert, same: \d) 0`, `$1 1`},                                   // PDO
		{`^(upsert: \[\[\{)("sku":"tea","stock":2\},false)`, `$1"id":1,$2`}, // Sequelize
		{`^(batch of upserts: .*) \[[\d,]+\]$`, `$1 []`},                    // of several rows, leafsql says none
		{`^(batch of upserts: .*"insertId":)"\d+n"`, `${1}"0n"`},            // the same, of Node
	}},
	{"of several rows that bring their keys, leafsql says the server's answer, which is 0 without AUTO_INCREMENT", []difference{
		{`^(batch with keys: \{.*"insertId":)"9001n"`, `${1}"0n"`},
	}},
	{"behind a staged statement, the session tells of the last of its parts", []difference{
		{`^(last id: .*\(1, )5\)`, `${1}0)`},
		{`^1\t6$`, "1\t0"}, // the same, of the command line
		{`^(load, warnings: .*)172`, `${1}0`},
	}},
	{"MySQL warns of the temporary table of a staged statement that is rolled back", []difference{
		{`^Query OK, 0 rows affected$`, `Query OK, 0 rows affected, 1 warning`},
	}},
}

// more are lines that only the proxy leads to.
var more = []string{
	"Warning (Code 1751): The creation of some temporary tables could not be rolled back.", // of the last of these
}

func expected(direct, through string) bool {
	for _, d := range differences {
		for _, l := range d.lines {
			if re := regexp.MustCompile(l.direct); re.MatchString(direct) && re.ReplaceAllString(direct, l.through) == through {
				return true
			}
		}
	}
	return false
}
