//go:build unix && clients

package clients

import (
	"fmt"
	"regexp"
	"slices"
	"testing"

	"github.com/leafsql/leafsql/testutil/mysqltest"
)

// runSite installs one site directly and another through the proxy, drops AUTO_INCREMENT from the second one's
// tables, and uses both: every output of the program and every row that it stores has to be the same. The steps
// are install and use.
func runSite(t *testing.T, step func(step string) program, least int, tables ...string) {
	for _, target := range mysqltest.Targets(t) {
		t.Run(target.Name, func(t *testing.T) {
			direct, through := target.Database(t), target.Database(t)
			u := createAccount(t, target, direct, through)
			for _, name := range []string{"install", "use"} {
				want := step(name).run(t, direct, address(t, direct), u)
				got := step(name).run(t, through, startProxy(t, through, "*"), u)
				compare(t, want, got)
				if name == "install" {
					dropAutoIncrement(t, through)
				}
			}
			rows := 0
			for _, table := range tables {
				want, got := readTimeless(t, direct, table), readTimeless(t, through, table)
				if len(want) != len(got) {
					t.Errorf("%s: %d rows directly, %d through the proxy", table, len(want), len(got))
					continue
				}
				for i := range want {
					if want[i] != got[i] {
						t.Errorf("%s\n direct: %s\nthrough: %s", table, shorten(want[i]), shorten(got[i]))
					}
				}
				rows += len(want)
			}
			t.Logf("%d rows", rows)
			if rows < least {
				t.Errorf("want at least %d", least)
			}
		})
	}
}

// dropAutoIncrement removes AUTO_INCREMENT from all columns of a database.
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
		execute(t, addParameters(dsn, "sql_mode=''"), fmt.Sprintf("ALTER TABLE `%s` MODIFY `%s` %s NOT NULL", table, column, kind))
		dropped++
	}
	if err := rows.Err(); err != nil || dropped == 0 {
		t.Fatalf("dropped AUTO_INCREMENT of %d columns, %v, want at least one and no error", dropped, err)
	}
}

// readTimeless returns the rows of a table of a site, without times and random values.
func readTimeless(t *testing.T, dsn, table string) (all []string) {
	t.Helper()
	db := open(t, dsn)
	defer db.Close()
	var columns string
	err := db.QueryRow(`SELECT GROUP_CONCAT(column_name ORDER BY ordinal_position) FROM information_schema.columns WHERE table_schema = DATABASE()
		AND table_name = ? AND NOT column_name REGEXP '_date|_modified|registered|registration|timestamp|touched|links_updated|random|user_pass|activation_key|token'`, table).Scan(&columns)
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range query(t, db, "SELECT "+columns+" FROM "+table) {
		if row[1] == "cron" { // depends on the jobs that are due at the time
			continue
		}
		all = append(all, unixTime.ReplaceAllString(fmt.Sprintf("%q", row), "TIME"))
	}
	slices.Sort(all)
	return all
}

var unixTime = regexp.MustCompile(`\b1[78]\d{8}\b`)
