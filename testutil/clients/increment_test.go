//go:build unix && clients

package clients

import (
	"slices"
	"testing"

	"github.com/leafsql/leafsql/testutil/mysqltest"
)

// TestConnectorsNeedIncrementOfOne: on a server with auto_increment_increment = 3, both Connector/J return the right ids if their sessions
// set it to 1, as docs/proxy.md states. Without this MySQL Connector/J counts the ids of a statement in steps of 3.
func TestConnectorsNeedIncrementOfOne(t *testing.T) {
	for _, kind := range mysqltest.Kinds() {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			target := mysqltest.Run(t, mysqltest.Config{Kind: kind, Args: []string{"--auto-increment-increment=3"}}).Target()
			const one = "sessionVariables=auto_increment_increment=1"
			runProgramOn(t, target, program{name: "MySQL Connector/J", command: jdbc("mysql", one+"&rewriteBatchedStatements=true")})
			runProgramOn(t, target, program{name: "MariaDB Connector/J", command: jdbc("mariadb", one)})
			dsn := target.Database(t)
			createTables(t, dsn, "")
			lines := program{name: "MySQL Connector/J", command: jdbc("mysql")}.run(t, dsn, startProxy(t, dsn, "*"), createAccount(t, target, dsn))
			if !slices.Contains(lines, "three: 3 [2,5,8] []") {
				t.Errorf("ids of three rows without the variable: lines %q, want the wrong ids 2, 5 and 8; otherwise the pages need not mention sessionVariables", lines[:4])
			}
		})
	}
}
