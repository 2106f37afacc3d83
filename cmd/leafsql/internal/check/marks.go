package check

import (
	"context"
	"slices"
	"strings"

	"github.com/leafsql/leafsql/cmd/leafsql/internal/databases"
	"github.com/leafsql/leafsql/cmd/leafsql/internal/survey"
	"github.com/leafsql/leafsql/internal/servererr"
)

// marks checks whether rows can have marks, which show that a fail-over lost writes.
func (c *checker) marks(ctx context.Context, store *databases.Store) error {
	user, err := store.User(ctx)
	if err != nil {
		return err
	}
	alter := "ALTER TABLE " + store.Name() + " "
	add := func(code, message, sql string) { c.add(on(store)(code, Warning, message, sql)) }
	switch description := c.Alloc.Columns["description"]; {
	case databases.Denied(c.MarkErr):
		add("rights", c.text("This user may not write the column description: rows get no marks, so after a fail-over that loses writes ids may come twice."),
			"GRANT SELECT, UPDATE ON "+store.Name()+" TO "+user)
	case servererr.Is(c.MarkErr, servererr.UnknownColumn):
		add("alloc-column", c.text("It has no column description: rows get no marks, so after a fail-over that loses writes ids may come twice."), alter+"ADD COLUMN description varchar(256)")
	case !description.HoldsMarks():
		add("alloc-column", c.say("Its column description is of type %s, which is too short for marks: after a fail-over that loses writes ids may come twice.", description.Type),
			alter+"MODIFY COLUMN description varchar(256)")
	}
	if strings.EqualFold(store.Global["log_bin"], "ON") && strings.EqualFold(store.Global["binlog_format"], "STATEMENT") {
		f := on(store)("alloc-binlog", Warning, c.text("binlog_format is STATEMENT: rows get no marks, so after a fail-over that loses writes ids may come twice."), "SET GLOBAL binlog_format = 'ROW'")
		f.Fix = "write it into the server's configuration as well"
		c.add(f)
	}
	return nil
}

// descriptions checks the descriptions of rows for marks.
func (c *checker) descriptions(store *databases.Store) {
	here := func(severity Severity, code, tag, message, fix string) {
		c.add(Finding{Code: code, Severity: severity, Server: store.Label, Tag: tag, Message: message, Fix: fix})
	}
	for _, e := range c.Marks.Broken {
		severity := Warning
		if slices.ContainsFunc(c.Tags, func(t *survey.Tag) bool { return t.Broken == e }) {
			severity = Error
		}
		here(severity, "row-broken", e.Tag, c.say("It gives no ids: %s.", e.Reason), e.Fix)
	}
	for _, tag := range c.Marks.Full {
		here(Warning, "row-unmarked", tag, c.text("Its description leaves no room for a mark, so after a fail-over that loses writes ids may come twice."), c.text("shorten it to 200 characters"))
	}
	for _, change := range c.MarkRows() {
		f := on(store)("row-unmarked", Note, c.say("Rows without a mark: %d. The next fetch writes it; a fail-over that loses this fetch gives its ids twice.", len(c.Marks.Unmarked)), change.SQL)
		f.Fix = "leafsql init writes the marks"
		c.add(f)
	}
}
