package check

import (
	"context"

	"github.com/leafsql/leafsql/cmd/leafsql/internal/column"
	"github.com/leafsql/leafsql/cmd/leafsql/internal/survey"
)

// A checker is the state of one run.
type checker struct {
	*survey.Survey
	opts        Options
	findings    []Finding
	unencodable map[string]bool // tags that leaf_alloc's character set cannot encode
}

func (c *checker) add(f Finding) {
	f.Message, f.Fix = c.translate(f.Message), c.translate(f.Fix) // translates whole texts; sprintf has translated formatted texts
	c.findings = append(c.findings, f)
}

// readDefinition returns the definition of the key's column, from SHOW CREATE TABLE.
func readDefinition(ctx context.Context, t *survey.Table) (column.Definition, error) {
	create, err := t.ReadCreate(ctx)
	if err != nil {
		return column.Definition{}, err
	}
	return column.FromCreateTable(create, t.Column)
}

// newTableFinding returns a finding about a table, without a message.
func newTableFinding(code string, severity Severity, t *survey.Table) Finding {
	return Finding{Code: code, Severity: severity, Server: t.Shard.Label, Table: t.Name(), Tag: t.Tag}
}

// sprintf formats a message in the language of the report.
func (c *checker) sprintf(format string, args ...any) string {
	if c.opts.Sprintf == nil {
		return c.opts.Texts.Sprintf(format, args...)
	}
	return c.opts.Sprintf(format, args...)
}

// translate translates a text.
func (c *checker) translate(english string) string { return c.opts.Texts.Text(english) }
