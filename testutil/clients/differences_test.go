//go:build unix

package clients

import "regexp"

// A difference is a line that differs through the proxy.
type difference struct{ direct, through string }

// differences are the expected ones. The pages for users describe them for Go's
// driver, too.
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
		{`^(batch of upserts: .*) \[[\d,]+\]$`, `$1 []`},                    // for several rows, leafsql returns no ids
		{`^(batch of upserts: .*"insertId":)"\d+n"`, `${1}"0n"`},            // the same, in Node
	}},
	{"of several rows that bring their keys, leafsql says the server's answer, which is 0 without AUTO_INCREMENT", []difference{
		{`^(batch with keys: \{.*"insertId":)"9001n"`, `${1}"0n"`},
	}},
	{"behind a staged statement, the session tells of the last of its parts", []difference{
		{`^(last id: .*\(1, )5\)`, `${1}0)`},
		{`^1\t6$`, "1\t0"}, // the same, in the command line
		{`^(load, warnings: .*)172`, `${1}0`},
	}},
	{"MySQL warns of the temporary table of a staged statement that is rolled back", []difference{
		{`^Query OK, 0 rows affected$`, `Query OK, 0 rows affected, 1 warning`},
	}},
}

// proxyOnly are lines that appear only through the proxy.
var proxyOnly = []string{
	"Warning (Code 1751): The creation of some temporary tables could not be rolled back.", // from the last of these differences
}

func isExpected(direct, through string) bool {
	for _, d := range differences {
		for _, l := range d.lines {
			if re := regexp.MustCompile(l.direct); re.MatchString(direct) && re.ReplaceAllString(direct, l.through) == through {
				return true
			}
		}
	}
	return false
}
