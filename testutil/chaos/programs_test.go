//go:build storm

package chaos

import (
	"os"
	"os/exec"
	"testing"

	"github.com/leafsql/leafsql/testutil/mysqltest"
)

// A program is a writer without any code for leafsql. It connects to one of the proxies (DB_HOST, DB_PORTS, DB_USER,
// DB_PASSWORD, DB_NAME) and INSERTs rows (WRITER, n) into orders, with n from NEXT on, until at least LEFT of them are
// acknowledged. It alternates between single rows, statements of 20 rows, and a transaction of two statements. Statements are
// text and prepared if its library supports both.
//
// It prints a line for each acknowledged statement, in a transaction after the COMMIT: the number of rows, and the n and the id of
// the first row, as its library returns it. After an error it prints a ! with the error's number and text, and continues with the
// next proxy. It does not reuse the numbers of a failed statement, since the rows may be stored.
type program struct {
	language string
	writers  int
	command  func(made, installed string, kind mysqltest.Kind) *exec.Cmd
}

// programs are the programs of the storm. Their files are in the folders made (by compile) and installed (by
// testutil/clients/install.sh all).
var programs = []program{
	{"PHP", 4, func(_, _ string, _ mysqltest.Kind) *exec.Cmd {
		return exec.Command("php", "-d", "display_errors=stderr", "testdata/writer.php")
	}},
	{"Python", 3, func(_, _ string, _ mysqltest.Kind) *exec.Cmd {
		return exec.Command("/usr/bin/python3", "testdata/writer.py")
	}},
	{"Java", 3, func(made, installed string, kind mysqltest.Kind) *exec.Cmd {
		return exec.Command("java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx64m", "-cp", installed+"/java/*:"+made, "Writer", jdbc[kind])
	}},
	{"Node", 3, func(_, installed string, _ mysqltest.Kind) *exec.Cmd {
		cmd := exec.Command("node", "testdata/writer.js")
		cmd.Env = []string{"NODE_PATH=" + installed + "/node/node_modules"}
		return cmd
	}},
	{"Go", 3, func(_, _ string, _ mysqltest.Kind) *exec.Cmd {
		cmd := exec.Command(os.Args[0])
		cmd.Env = []string{programEnv + "=yes"}
		return cmd
	}},
}

// jdbc has the URLs for each server's own driver.
var jdbc = map[mysqltest.Kind]string{
	mysqltest.MariaDB: "jdbc:mariadb://HOST:PORT/NAME?useServerPrepStmts=true",
	mysqltest.MySQL:   "jdbc:mysql://HOST:PORT/NAME?useServerPrepStmts=true&allowPublicKeyRetrieval=true&sslMode=DISABLED",
}

// programOf returns the program that the writer of a number runs.
func programOf(writer int) program {
	for _, p := range programs {
		if writer -= p.writers; writer < 0 {
			return p
		}
	}
	panic("no such writer")
}

// compile builds leafsql and the programs of compiled languages into the folder made. It fails the test if the clients are not
// installed.
func compile(t *testing.T, made, installed string) {
	t.Helper()
	if _, err := os.Stat(installed + "/node"); err != nil {
		t.Fatalf("%v; run testutil/clients/install.sh all", err)
	}
	for _, cmd := range []*exec.Cmd{
		exec.Command("javac", "-proc:none", "-d", made, "testdata/Writer.java"),
		exec.Command("go", "build", "-C", "../../cmd/leafsql", "-buildvcs=false", "-o", made+"/leafsql", "."),
	} {
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", cmd, err, out)
		}
	}
}
