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
	f.Message, f.Fix = c.text(f.Message), c.text(f.Fix) // translates whole texts; formatted ones were translated by say
	c.findings = append(c.findings, f)
}

// definition returns the definition of the key's column, from SHOW CREATE TABLE.
func definition(ctx context.Context, t *survey.Table) (column.Definition, error) {
	create, err := t.Create(ctx)
	if err != nil {
		return column.Definition{}, err
	}
	return column.Of(create, t.Column)
}

// at returns a finding about a table, without a message.
func at(code string, severity Severity, t *survey.Table) Finding {
	return Finding{Code: code, Severity: severity, Server: t.Shard.Label, Table: t.Name(), Tag: t.Tag}
}

// say formats a message in the language of the report.
func (c *checker) say(format string, args ...any) string {
	return c.opts.Texts.Sprintf(format, args...)
}

// text translates a text.
func (c *checker) text(english string) string { return c.opts.Texts.Text(english) }
