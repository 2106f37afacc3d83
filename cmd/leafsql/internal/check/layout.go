package check

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/leafsql/leafsql/cmd/leafsql/internal/databases"
	"github.com/leafsql/leafsql/cmd/leafsql/internal/survey"
	"github.com/leafsql/leafsql/internal/part"
	"github.com/leafsql/leafsql/internal/quote"
	"github.com/leafsql/leafsql/internal/schema"
)

// layout judges how leaf_alloc is made, and whether its server and that of the worker ids
// keep what they confirm.
func (c *checker) layout(context.Context) error {
	for i, store := range c.Set.Stores {
		if store.Away != nil {
			c.add(Finding{Code: "store-away", Severity: Error, Server: store.Label,
				Message: "This store of leafStore does not answer: ids come from the others (" + part.Text(store.Away) + ").",
				Fix:     "bring it back; if its rows are lost, bring it back empty"})
			continue
		}
		c.store(store, c.Allocs[i])
	}
	c.leaseDurability()
	return nil
}

// store judges one leaf_alloc.
func (c *checker) store(store *databases.Store, alloc survey.Alloc) {
	here := func(code string, severity Severity, message string, sql ...string) Finding {
		return Finding{Code: code, Severity: severity, Server: store.Label, Table: store.Database + "." + store.Table, Message: message, SQL: sql}
	}
	alter := "ALTER TABLE " + store.Name() + " "
	if !alloc.Exists {
		if !c.takesSegments() {
			return
		}
		f := here("alloc-missing", Error, "There is no such table to take ids from.", schema.LeafAlloc(quote.Table(store.Plain())))
		f.Fix = "leafsql init creates it, with the rows"
		c.add(f)
		return
	}
	if alloc.Denied {
		return // found by rights
	}
	if !alloc.Unique {
		sql := alter + "ADD PRIMARY KEY (biz_tag)"
		if alloc.PrimaryKey {
			sql = alter + "ADD UNIQUE KEY (biz_tag)"
		}
		c.add(here("alloc-key", Error, "biz_tag is neither the primary key nor unique: a tag can get a second row, and its ids are refused then.", sql))
	}
	if e := strings.ToLower(alloc.Engine); e != "" && e != "innodb" {
		c.add(here("alloc-engine", Error, "Its engine is "+alloc.Engine+", which can lose a range that was handed out when the server crashes.", alter+"ENGINE = InnoDB"))
	}
	c.columns(alloc, here, alter)
	if len(alloc.Triggers) > 0 {
		f := here("alloc-trigger", Warning, "Triggers stand on it ("+strings.Join(alloc.Triggers, ", ")+"): every fetch takes a transaction and five round trips, and a trigger that changes max_id stops it.")
		f.Fix = "drop them, if nothing else needs them"
		for _, name := range alloc.Triggers {
			f.SQL = append(f.SQL, "DROP TRIGGER "+quote.In(store.Database, name))
		}
		c.add(f)
	}
	c.durability(store, here)
}

// takesSegments reports whether any table takes ids from leaf_alloc, or would if it
// were there.
func (c *checker) takesSegments() bool {
	return len(c.Tags) > 0 || slices.ContainsFunc(c.Shards, func(s *survey.Shard) bool { return s.Config.Auto })
}

// columns judges leaf_alloc's columns against Leaf's.
func (c *checker) columns(alloc survey.Alloc, here func(string, Severity, string, ...string) Finding, alter string) {
	longest := 128
	for _, tag := range c.Tags {
		longest = max(longest, utf8.RuneCountInString(tag.Name))
	}
	for _, want := range []struct {
		name, def string
		fits      func(survey.Column) bool
	}{
		{"biz_tag", fmt.Sprintf("varchar(%d) NOT NULL DEFAULT ''", longest), c.holdsTags},
		{"max_id", "bigint NOT NULL DEFAULT 1", func(col survey.Column) bool { return strings.HasPrefix(col.Type, "bigint") && !col.Nullable }},
		{"step", "int NOT NULL", func(col survey.Column) bool {
			return !col.Nullable && (strings.HasPrefix(col.Type, "int") || strings.HasPrefix(col.Type, "bigint"))
		}},
	} {
		col, ok := alloc.Columns[want.name]
		switch {
		case !ok:
			c.add(here("alloc-column", Error, "It has no column "+want.name+".", alter+"ADD COLUMN "+want.name+" "+want.def))
		case !want.fits(col):
			null := ""
			if col.Nullable {
				null = ", and may be NULL"
			}
			c.add(here("alloc-column", Error, sprint("Its column %s is of type %s%s.", want.name, col.Type, null), alter+"MODIFY COLUMN "+want.name+" "+want.def))
		}
	}
	updated, ok := alloc.Columns["update_time"]
	if !ok || !strings.Contains(updated.Extra, "on update") {
		verb := "ADD"
		if ok {
			verb = "MODIFY"
		}
		c.add(here("alloc-column", Note, "It does not note when a row changed: Java Leaf's pages and leafsql tags show it.",
			alter+verb+" COLUMN update_time timestamp NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP"))
	}
}

// holdsTags reports whether every configured tag fits into biz_tag.
func (c *checker) holdsTags(col survey.Column) bool {
	typ, rest, _ := strings.Cut(col.Type, "(")
	length, _ := strconv.Atoi(strings.TrimSuffix(rest, ")"))
	if typ != "varchar" && typ != "char" {
		return false
	}
	for _, tag := range c.Tags {
		if utf8.RuneCountInString(tag.Name) > length {
			return false
		}
	}
	return true
}

// durability judges a leaf_alloc on another server than the rows: a fetch that a power
// cut takes back there goes out again, while the rows with its ids are still here.
func (c *checker) durability(store *databases.Store, here func(string, Severity, string, ...string) Finding) {
	if !slices.ContainsFunc(c.Shards, func(s *survey.Shard) bool { return s.ID != store.ID }) {
		return
	}
	c.forgetful(store, func(variable, when string) Finding {
		return here("alloc-durability", Error, sprint("%s there, and the rows are on other servers: a range that was handed out is handed out again %s.", variable, when))
	})
}

// leaseDurability judges the server of the worker ids. A cluster of Galera has on its
// other nodes what one of them lost.
func (c *checker) leaseDurability() {
	if c.Leases == nil || strings.EqualFold(c.Leases.Table.Global["wsrep_on"], "ON") {
		return
	}
	c.forgetful(c.Leases.Table, func(variable, _ string) Finding {
		return Finding{Code: "leases-durability", Severity: Warning, Server: c.Leases.Table.Label, Table: c.Leases.Table.Plain(),
			Message: sprint("%s: a crash can take back the worker ids that were taken last, so once the server was started again a process that starts waits up to 135 s for its first id.", variable)}
	})
}

// forgetful adds a finding for each variable by which a crash can take back commits that
// the server has confirmed.
func (c *checker) forgetful(store *databases.Store, finding func(variable, when string) Finding) {
	for _, v := range []struct{ name, when string }{
		{"innodb_flush_log_at_trx_commit", "when the machine loses power"},
		{"sync_binlog", "when the machine loses power and a replica takes over"},
	} {
		value := store.Global[v.name]
		if v.name == "sync_binlog" && !strings.EqualFold(store.Global["log_bin"], "ON") || value == "1" || value == "" {
			continue
		}
		f := finding(v.name+" is "+value, v.when)
		f.SQL = []string{"SET GLOBAL " + v.name + " = 1"}
		f.Fix = "write it into the server's configuration as well"
		c.add(f)
	}
}
