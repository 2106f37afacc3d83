package check

import (
	"context"
	"slices"
	"strings"

	"github.com/leafsql/leafsql/cmd/leafsql/internal/survey"
	"github.com/leafsql/leafsql/internal/chinese"
	"github.com/leafsql/leafsql/internal/versions"
)

// A trigger that runs before rows of a table are written.
const triggersBefore = "SELECT trigger_name FROM information_schema.triggers WHERE event_object_schema = ? AND event_object_table = ? " +
	"AND action_timing = 'BEFORE' AND event_manipulation IN ('INSERT', 'UPDATE')"

// versions finds servers on which statements are refused because of their version.
func (c *checker) versions(ctx context.Context) error {
	for _, shard := range c.Shards {
		mariaDB, version := shard.Inspection.MariaDB, shard.Inspection.Version
		var triggered []*survey.Table
		if _, has := versions.NullsColumns(mariaDB, version); has {
			for _, t := range shard.Tables {
				names, err := shard.List(ctx, triggersBefore, t.Database, t.Table.Table)
				if err != nil {
					return err
				}
				if len(names) > 0 {
					triggered = append(triggered, t)
				}
			}
		}
		for _, f := range oldServer(c.opts.Texts, shard.Label, mariaDB, version, triggered) {
			c.add(f)
		}
	}
	return nil
}

// oldServer is what a server's version keeps from being filled; triggered are the tables with a trigger BEFORE INSERT or UPDATE.
func oldServer(texts chinese.Texts, label string, mariaDB bool, version int, triggered []*survey.Table) (findings []Finding) {
	name := versions.Name(mariaDB, version)
	if !versions.NumbersRows(mariaDB, version) {
		findings = append(findings, Finding{Code: "server-old", Severity: Warning, Server: label,
			Message: texts.Sprintf("This is %s. INSERT … SELECT and LOAD DATA into configured tables are refused: they need MySQL 8.0 or MariaDB 10.2.", name),
			Fix:     "read the rows and insert them with VALUES, or upgrade the server"})
	}
	if mended, has := versions.NullsColumns(mariaDB, version); has && len(triggered) > 0 {
		var tables []string
		for _, t := range triggered {
			tables = append(tables, t.Name())
		}
		slices.Sort(tables)
		findings = append(findings, Finding{Code: "server-bug", Severity: Warning, Server: label,
			Message: texts.Sprintf("This is %s, which takes selected keys for NULL where a table has a trigger BEFORE INSERT or UPDATE (MDEV-36026). LOAD DATA into %s is refused, and so is INSERT … SELECT where the key is not AUTO_INCREMENT any more.",
				name, strings.Join(tables, ", ")),
			Fix: texts.Sprintf("upgrade the server to %s, or read the rows and insert them with VALUES", mended)})
	}
	return findings
}
