// Package versions reports which features some versions of MySQL and MariaDB lack. A version is a number as in version
// comments: 101119, 90704.
//
//	if !versions.HasWindowFunctions(mariaDB, version) { … } // INSERT … SELECT has to be refused
package versions

import (
	"fmt"
	"strings"
)

// Format returns the version as people write it, such as "10.11.19".
func Format(mariaDB bool, version int) string {
	return fmt.Sprintf("%s %d.%d.%d", map[bool]string{true: "MariaDB", false: "MySQL"}[mariaDB], version/10000, version/100%100, version%100)
}

// TiDB reports whether the result of VERSION() is TiDB's, such as "8.0.11-TiDB-v8.5.0".
func TiDB(version string) bool { return strings.Contains(version, "TiDB") }

// Vitess reports whether the value of @@version is that of Vitess, such as "8.4.6-Vitess".
func Vitess(version string) bool { return strings.Contains(strings.ToLower(version), "vitess") }

// HasWindowFunctions reports whether the server has window functions. leafsql needs them for an INSERT … SELECT: the rows are
// written into a temporary table, and a window function numbers them.
func HasWindowFunctions(mariaDB bool, version int) bool {
	if mariaDB {
		return version >= 100200
	}
	return version >= 80000
}

// HasNullColumnsBug reports whether the server has the bug MDEV-36026, and which release fixed the bug. The bug concerns an
// INSERT … SELECT of several rows into a table with a trigger BEFORE INSERT or BEFORE UPDATE. From the second row on, the
// server treats NOT NULL columns as NULL: the statement fails with error 1048, and with IGNORE it stores 0. An
// AUTO_INCREMENT key is not affected.
func HasNullColumnsBug(mariaDB bool, version int) (fixedIn string, has bool) {
	fixedIn, has = map[int]string{
		100528: "10.5.29",
		100621: "10.6.22",
		101111: "10.11.12",
		110405: "11.4.6",
		110702: "11.8.2", // no release of 11.7 followed
		110801: "11.8.2",
	}[version]
	return fixedIn, has && mariaDB
}
