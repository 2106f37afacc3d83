package check

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/leafsql/leafsql/cmd/leafsql/internal/databases"
	"github.com/leafsql/leafsql/cmd/leafsql/internal/survey"
	"github.com/leafsql/leafsql/idgen/segment"
	"github.com/leafsql/leafsql/internal/servererr"
)

// checkMarks checks whether rows of leaf_alloc can have marks. A mark is a text in the column description, which names the
// server on which ids were last fetched from the row. It shows that a fail-over may have lost writes.
func (c *checker) checkMarks(ctx context.Context, store *databases.Store) error {
	user, err := store.User(ctx)
	if err != nil {
		return err
	}
	alter := "ALTER TABLE " + store.QuotedName() + " "
	add := func(code, message, sql string) { c.add(newFinder(store)(code, Warning, message, sql)) }
	switch description := c.Alloc.Columns["description"]; {
	case databases.IsDenied(c.MarkErr):
		add("rights", c.translate("This user has no right to write the column description: rows get no marks, so ids may be issued twice after a fail-over that loses writes."),
			"GRANT SELECT, UPDATE ON "+store.QuotedName()+" TO "+user)
	case servererr.Is(c.MarkErr, servererr.UnknownColumn):
		add("alloc-column", c.translate("It has no column description: rows get no marks, so ids may be issued twice after a fail-over that loses writes."), alter+"ADD COLUMN description varchar(256)")
	case !description.HoldsMarks():
		add("alloc-column", c.sprintf("Its column description is of type %s, which is too short for marks: ids may be issued twice after a fail-over that loses writes.", description.Type),
			alter+"MODIFY COLUMN description varchar(256)")
	}
	if strings.EqualFold(store.Global["log_bin"], "ON") && strings.EqualFold(store.Global["binlog_format"], "STATEMENT") {
		f := newFinder(store)("alloc-binlog", Warning, c.translate("binlog_format is STATEMENT: rows get no marks, so ids may be issued twice after a fail-over that loses writes."), "SET GLOBAL binlog_format = 'ROW'")
		f.Fix = "also write it into the server's configuration"
		c.add(f)
	}
	return nil
}

// checkDescriptions checks the descriptions of rows for marks.
func (c *checker) checkDescriptions(store *databases.Store) {
	here := func(severity Severity, code, tag, message, fix string) {
		c.add(Finding{Code: code, Severity: severity, Server: store.Label, Tag: tag, Message: message, Fix: fix})
	}
	for _, err := range c.Marks.Broken {
		e, _ := errors.AsType[*segment.RowError](err)
		severity := Warning
		if slices.ContainsFunc(c.Tags, func(t *survey.Tag) bool { return t.Broken == e }) {
			severity = Error
		}
		here(severity, "row-broken", e.Tag, c.sprintf("It issues no ids: %s.", e.Reason), e.Fix)
	}
	for _, tag := range c.Marks.Full {
		here(Warning, "row-unmarked", tag, c.translate("Its description is too long to append a mark, so ids may be issued twice after a fail-over that loses writes."), c.translate("shorten it to 200 characters"))
	}
	for _, change := range c.MarkRows() {
		f := newFinder(store)("row-unmarked", Note, c.sprintf("Rows without a mark: %d. The next fetch writes it; after a fail-over that loses this fetch, its ids are issued twice.", len(c.Marks.Unmarked)), change.SQL)
		f.Fix = "write the marks with leafsql init"
		c.add(f)
	}
}
