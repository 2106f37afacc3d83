//go:build unix

package main

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"
)

// A table is the table of the page: columns by server, cells by row.
type table struct {
	servers []string
	cells   map[string]map[string]string
}

// writeColumn writes a server's column into the page's table. It replaces a column of the same series, such as
// MySQL 8.0.
func writeColumn(file, server string, column map[string]string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	before, rest, found := strings.Cut(string(text), "\n| |")
	old, after, ended := strings.Cut(rest, "\n\n")
	if !found || !ended {
		return fmt.Errorf("%s holds no table of servers", file)
	}
	t := parseTable("| |" + old)
	t.put(server, column)
	return os.WriteFile(file, []byte(before+"\n"+t.String()+"\n"+after), 0o644)
}

func parseTable(text string) table {
	t := table{cells: map[string]map[string]string{}}
	for line := range strings.Lines(text) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), " | ")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		switch {
		case t.servers == nil:
			t.servers = cells[1:]
			for _, s := range t.servers {
				t.cells[s] = map[string]string{}
			}
		case strings.Trim(cells[0], "- ") != "":
			for i, s := range t.servers {
				if i+1 < len(cells) {
					t.cells[s][cells[0]] = cells[i+1]
				}
			}
		}
	}
	t.servers = slices.DeleteFunc(t.servers, func(s string) bool { return s == "" })
	return t
}

// makes are the servers' names, in the order of their columns.
var makes = []string{"MySQL", "MariaDB", "TiDB", "Vitess"}

// put adds a column, or its new cells. The newest version of a server comes first.
func (t *table) put(server string, column map[string]string) {
	for what, cell := range t.cells[server] {
		column[what] = cmp.Or(column[what], cell)
	}
	t.servers = slices.DeleteFunc(t.servers, func(s string) bool { return seriesOf(s) == seriesOf(server) })
	t.servers = append(t.servers, server)
	t.cells[server] = column
	slices.SortFunc(t.servers, func(a, b string) int {
		return cmp.Or(cmp.Compare(slices.Index(makes, strings.Fields(a)[0]), slices.Index(makes, strings.Fields(b)[0])), -slices.Compare(versionNumbers(a), versionNumbers(b)))
	})
}

// seriesOf returns "MySQL 8.0" for "MySQL 8.0.33".
func seriesOf(server string) string {
	name, _, _ := strings.Cut(server, " ")
	n := versionNumbers(server)
	return fmt.Sprint(name, n[:min(2, len(n))])
}

func versionNumbers(server string) (n []int) {
	_, version, _ := strings.Cut(server, " ")
	for part := range strings.SplitSeq(version, ".") {
		var number int
		fmt.Sscan(part, &number)
		n = append(n, number)
	}
	return n
}

func (t table) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "| | %s |\n| ---%s |\n", strings.Join(t.servers, " | "), strings.Repeat(" | ---", len(t.servers)))
	row := func(what string) {
		b.WriteString("| " + what)
		for _, s := range t.servers {
			b.WriteString(" | " + cmp.Or(t.cells[s][what], notRun))
		}
		b.WriteString(" |\n")
	}
	for _, c := range capabilities {
		row(c.what)
	}
	row(suite)
	return b.String()
}
