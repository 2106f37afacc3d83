//go:build unix && clients

package clients

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/leafsql/leafsql/testutil/mysqltest"
)

// TestWordPress installs a site directly and another through the proxy, drops AUTO_INCREMENT from the second one's tables, and
// has people write on both: what WordPress is told, and every row that it stores, is the same.
func TestWordPress(t *testing.T) {
	site := func(step string) program {
		return program{"WordPress, " + step, func(t *testing.T) *exec.Cmd {
			cmd := command("wordpress", "php", "site.php", step)(t)
			cmd.Env = append(cmd.Env, "WORDPRESS="+filepath.Join(installed(t, "wordpress"), "usr/share/wordpress")+"/")
			return cmd
		}}
	}
	for _, target := range mysqltest.Targets(t) {
		t.Run(target.Name, func(t *testing.T) {
			direct, through := target.Database(t), target.Database(t)
			u := account(t, target, direct, through)
			for _, step := range []string{"install", "use"} {
				want := site(step).run(t, direct, address(t, direct), u)
				got := site(step).run(t, through, startProxy(t, through, "*"), u)
				compare(t, want, got)
				if step == "install" {
					dropAutoIncrement(t, through)
				}
			}
			rows := 0
			for _, table := range strings.Fields("commentmeta comments links options postmeta posts term_relationships term_taxonomy termmeta terms usermeta users") {
				want, got := timeless(t, direct, "wp_"+table), timeless(t, through, "wp_"+table)
				if len(want) != len(got) {
					t.Errorf("wp_%s: %d rows directly, %d through the proxy", table, len(want), len(got))
					continue
				}
				for i := range want {
					if want[i] != got[i] {
						t.Errorf("wp_%s\n direct: %s\nthrough: %s", table, want[i], got[i])
					}
				}
				rows += len(want)
			}
			t.Logf("%d rows", rows)
			if rows < 300 {
				t.Error("want at least 300")
			}
		})
	}
}

// dropAutoIncrement makes plain keys of all columns of a database that have it.
func dropAutoIncrement(t *testing.T, dsn string) {
	t.Helper()
	db := open(t, dsn)
	defer db.Close()
	rows, err := db.Query("SELECT table_name, column_name, column_type FROM information_schema.columns WHERE table_schema = DATABASE() AND extra LIKE '%auto_increment%'")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	dropped := 0
	for rows.Next() {
		var table, column, kind string
		if err := rows.Scan(&table, &column, &kind); err != nil {
			t.Fatal(err)
		}
		execute(t, parameters(dsn, "sql_mode=''"), fmt.Sprintf("ALTER TABLE `%s` MODIFY `%s` %s NOT NULL", table, column, kind))
		dropped++
	}
	if err := rows.Err(); err != nil || dropped == 0 {
		t.Fatalf("%d columns with AUTO_INCREMENT, %v", dropped, err)
	}
}

// timeless is what a table of WordPress holds, but for times and what is random.
func timeless(t *testing.T, dsn, table string) (all []string) {
	t.Helper()
	db := open(t, dsn)
	defer db.Close()
	var columns string
	err := db.QueryRow(`SELECT GROUP_CONCAT(column_name ORDER BY ordinal_position) FROM information_schema.columns WHERE table_schema = DATABASE()
		AND table_name = ? AND NOT column_name REGEXP '_date|_modified|registered|user_pass|activation_key'`, table).Scan(&columns)
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range query(t, db, "SELECT "+columns+" FROM "+table+" ORDER BY 1, 2") {
		if row[1] == "cron" { // which jobs are due at the same second
			continue
		}
		all = append(all, unixTime.ReplaceAllString(fmt.Sprintf("%q", row), "TIME"))
	}
	return all
}

var unixTime = regexp.MustCompile(`\b1[78]\d{8}\b`)
