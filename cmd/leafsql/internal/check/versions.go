package check

import (
	"context"
	"slices"
	"strings"

	"github.com/leafsql/leafsql/cmd/leafsql/internal/survey"
	"github.com/leafsql/leafsql/internal/chinese"
	"github.com/leafsql/leafsql/internal/versions"
)

// checkVersions finds servers on which statements are refused because of their version.
func (c *checker) checkVersions(context.Context) error {
	for _, shard := range c.Shards {
		for _, f := range findOldServer(c.opts.Texts, shard.Label, shard.Inspection.MariaDB, shard.Inspection.Version, shard.Tables) {
			c.add(f)
		}
	}
	return nil
}

// findOldServer returns findings about statements that are refused because of the server's version.
func findOldServer(texts chinese.Texts, label string, mariaDB bool, version int, tables []*survey.Table) (findings []Finding) {
	name := versions.Format(mariaDB, version)
	if !versions.HasWindowFunctions(mariaDB, version) {
		findings = append(findings, Finding{Code: "server-old", Severity: Warning, Server: label,
			Message: texts.Sprintf("This is %s. INSERT … SELECT and LOAD DATA into configured tables are refused: they need MySQL 8.0 or MariaDB 10.2.", name),
			Fix:     "read the rows and insert them with VALUES, or upgrade the server"})
	}
	var triggered, hidden []string
	for _, t := range tables {
		switch {
		case t.RefusesLoad && t.TriggersHidden:
			hidden = append(hidden, t.Name())
		case t.RefusesLoad:
			triggered = append(triggered, t.Name())
		}
	}
	mended, _ := versions.HasNullColumnsBug(mariaDB, version)
	bug := func(message, fix string) {
		findings = append(findings, Finding{Code: "server-bug", Severity: Warning, Server: label, Message: message, Fix: fix})
	}
	slices.Sort(triggered)
	slices.Sort(hidden)
	if len(triggered) > 0 {
		bug(texts.Sprintf("This is %s, which replaces selected keys by NULL if a table has a trigger BEFORE INSERT or UPDATE (MDEV-36026). LOAD DATA into %s is refused, and so is INSERT … SELECT if the key no longer has AUTO_INCREMENT.",
			name, strings.Join(triggered, ", ")),
			texts.Sprintf("upgrade the server to %s, or read the rows and insert them with VALUES", mended))
	}
	if len(hidden) > 0 {
		bug(texts.Sprintf("This is %s, which replaces selected keys by NULL if a table has a trigger BEFORE INSERT or UPDATE (MDEV-36026), and this user has no right to see the triggers of %s. LOAD DATA into it is refused, and so is INSERT … SELECT if the key no longer has AUTO_INCREMENT.",
			name, strings.Join(hidden, ", ")),
			texts.Sprintf("grant TRIGGER on the table directly to this user, upgrade the server to %s, or read the rows and insert them with VALUES", mended))
	}
	return findings
}
