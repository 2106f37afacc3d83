//go:build unix

package mysqltest

import (
	"slices"
	"strconv"
)

// Vitess keeps its rows in a MySQL server that Stop ends. CREATE DATABASE creates a keyspace without shards, which is lost if Vitess is
// restarted.

// ShardedKeyspace names a keyspace of Vitess with two shards. ALTER VSCHEMA adds the vindexes of its tables.
const ShardedKeyspace = "sharded"

// startMySQL starts the MySQL server in which Vitess keeps its rows.
func (s *Server) startMySQL() error {
	bin, err := findInstalled("mysql-8.0")
	if err != nil {
		return err
	}
	if s.mysql, err = prepare(bin, Config{Args: append([]string{"--log-bin", "--max-connections=15000"}, s.args...)}); err != nil {
		return err
	}
	return s.mysql.startOnFreePort()
}

// vitessArgs returns the arguments of a start of Vitess, more included.
func vitessArgs(s *Server, more []string) []string {
	mysql := s.mysql.filePath("sock")
	args := append(slices.Clone(more),
		"--bind-address", "127.0.0.1", "--log-level", "error", // no HTTP without --port
		"--mysql-server-bind-address", "127.0.0.1", "--mysql-server-port", strconv.Itoa(s.port), "--mysql-server-socket-path", s.filePath("sock"), "--mysql-auth-server-impl", "none",
		"--proto-topo", `keyspaces { name: "`+ShardedKeyspace+`" shards { name: "-80" } shards { name: "80-" } } keyspaces { name: "unsharded" shards { name: "0" } }`,
		"--dbddl-plugin", "vttest", "--tablet-refresh-interval", "100ms", "--srv-topo-cache-refresh", "100ms", // CREATE DATABASE waits for both
		"--vschema-ddl-authorized-users", "%",
		"--mycnf-server-id", "1", "--mycnf-socket-file", mysql, "--db-socket", mysql,
		"--queryserver-config-pool-size", "50", "--queryserver-config-stream-pool-size", "50", "--queryserver-config-transaction-cap", "300",
		"--queryserver-config-transaction-timeout", "5m", "--tablet-hostname", "127.0.0.1",
	)
	for _, user := range []string{"allprivs", "app", "appdebug", "dba", "filtered", "repl"} {
		args = append(args, "--db-"+user+"-user", "root")
	}
	return args
}
