package column_test

import (
	"database/sql"
	"regexp"
	"strings"
	"testing"

	_ "github.com/go-sql-driver/mysql"

	"github.com/leafsql/leafsql/cmd/leafsql/internal/column"
	"github.com/leafsql/leafsql/testutil/mysqltest"
)

// TestAlterChangesOnlyRequestedAttributes: only the requested attributes change, on both servers.
func TestAlterChangesOnlyRequestedAttributes(t *testing.T) {
	for _, target := range mysqltest.Targets(t) {
		t.Run(target.Name, func(t *testing.T) {
			db, err := sql.Open("mysql", target.Database(t))
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			for _, def := range []string{
				"`id` INT UNSIGNED NOT NULL AUTO_INCREMENT COMMENT 'the AUTO_INCREMENT, it''s `id` \\\\ INT\nof orders,' PRIMARY KEY, `b` INT",
				"`Id` SMALLINT NOT NULL AUTO_INCREMENT, PRIMARY KEY (id), `a_id` INT DEFAULT 5",
				"`id` BIGINT AUTO_INCREMENT KEY, auto_increment INT",
				"`we``ird` INT(8) UNSIGNED ZEROFILL NOT NULL AUTO_INCREMENT UNIQUE, other INT",
				"`id` INT NOT NULL AUTO_INCREMENT PRIMARY KEY INVISIBLE, n INT",
			} {
				if target.Name == "mariadb" && strings.Contains(def, "INVISIBLE") {
					continue // MariaDB requires a default for it without AUTO_INCREMENT
				}
				exec(t, db, "DROP TABLE IF EXISTS t")
				exec(t, db, "CREATE TABLE t ("+def+")")
				before := showCreate(t, db)
				name := regexp.MustCompile("^`((?:[^`]|``)+)`").FindStringSubmatch(def)[1]
				col, err := column.FromCreateTable(before, strings.ReplaceAll(name, "``", "`"))
				if err != nil {
					t.Fatal(err)
				}
				want := strings.Replace(before, " AUTO_INCREMENT", "", 1)
				want = regexp.MustCompile("(?m)^(  `"+regexp.QuoteMeta(name)+"` )(tiny|small|medium|big)?int(\\(\\d+\\))?").ReplaceAllString(want, "${1}bigint")
				exec(t, db, col.Widen().WithoutAutoIncrement().Alter("t"))
				if got := showCreate(t, db); withoutDisplayWidths(got) != withoutDisplayWidths(want) {
					t.Errorf("after ALTER of\n%s\ntable =\n%s\nwant\n%s", before, got, want)
				}
				// And back.
				col, err = column.FromCreateTable(showCreate(t, db), strings.ReplaceAll(name, "``", "`"))
				if err != nil {
					t.Fatal(err)
				}
				if col.AutoIncrement() {
					t.Errorf("%s: AutoIncrement() = true after the ALTER, want false", def)
				}
				exec(t, db, col.WithAutoIncrement().Alter("t"))
				if got := showCreate(t, db); !strings.Contains(got, " AUTO_INCREMENT") {
					t.Errorf("table = %s, want AUTO_INCREMENT again", got)
				}
			}
		})
	}
}

// withoutDisplayWidths removes the display widths that some servers add.
func withoutDisplayWidths(create string) string {
	return regexp.MustCompile(`bigint\(\d+\)`).ReplaceAllString(strings.ReplaceAll(create, " DEFAULT NULL", ""), "bigint")
}

func exec(t *testing.T, db *sql.DB, text string) {
	t.Helper()
	if _, err := db.Exec(text); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
}

func showCreate(t *testing.T, db *sql.DB) string {
	t.Helper()
	var name, create string
	if err := db.QueryRow("SHOW CREATE TABLE t").Scan(&name, &create); err != nil {
		t.Fatal(err)
	}
	return create
}

func TestNoSuchColumnIsAnError(t *testing.T) {
	if _, err := column.FromCreateTable("CREATE TABLE `t` (\n  `a` int\n)", "id"); err == nil {
		t.Error("FromCreateTable() error = nil, want one for a missing column")
	}
}
