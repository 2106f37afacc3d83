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
	"github.com/leafsql/leafsql/internal/quote"
	"github.com/leafsql/leafsql/internal/schema"
)

// layout checks the definitions of leaf_alloc and leaf_worker, and whether their servers keep confirmed writes.
func (c *checker) layout(ctx context.Context) error {
	if err := c.charset(ctx, c.Set.Store, c.Alloc); err != nil {
		return err
	}
	c.store(c.Set.Store, c.Alloc)
	c.leaseTable()
	return nil
}

// charset finds tags that leaf_alloc's character set cannot encode.
func (c *checker) charset(ctx context.Context, store *databases.Store, alloc survey.Alloc) error {
	set := alloc.Columns["biz_tag"].Charset
	if set == "" || set == "utf8mb4" {
		return nil
	}
	for _, tag := range c.Tags {
		if !strings.ContainsFunc(tag.Name, func(r rune) bool { return r >= utf8.RuneSelf }) {
			continue
		}
		var kept string
		if err := store.DB.QueryRowContext(ctx, "SELECT CONVERT(CONVERT(? USING "+set+") USING utf8mb4)", tag.Name).Scan(&kept); err != nil {
			return fmt.Errorf("leafsql: the character set of leaf_alloc on %s: %w; %s", store.Label, err, databases.WayOut(err))
		}
		if kept != tag.Name {
			c.unencodable[tag.Name] = true
			f := on(store)("alloc-column", Error, c.say("Its character set %s cannot hold the tag %s.", set, tag.Name), "ALTER TABLE "+store.Name()+" CONVERT TO CHARACTER SET utf8mb4")
			f.Tag = tag.Name
			c.add(f)
		}
	}
	return nil
}

// store checks a leaf_alloc.
func (c *checker) store(store *databases.Store, alloc survey.Alloc) {
	here := on(store)
	alter := "ALTER TABLE " + store.Name() + " "
	if !alloc.Exists {
		if !c.takesSegments() {
			return
		}
		f := here("alloc-missing", Error, c.text("There is no such table to take ids from."), schema.LeafAlloc(quote.Table(store.Plain())))
		f.Fix = "leafsql init creates it, with the rows"
		c.add(f)
		return
	}
	if alloc.Denied {
		return // reported by rights
	}
	c.kept(here, "alloc", store, alloc.Kept, c.text("a range that was handed out"), c.text("every fetch takes a transaction and five round trips, and a trigger that changes max_id stops it"))
	c.durability(store, here)
	if alloc.Engine == survey.View {
		return
	}
	if !alloc.Unique {
		c.add(here("alloc-key", Error, c.text("biz_tag is neither the primary key nor unique: a tag can get a second row, and its ids are refused then."), addKey(store, "biz_tag", alloc.Layout)))
	}
	c.columns(alloc, here, alter)
}

func addKey(table *databases.Store, column string, l survey.Layout) string {
	key := "PRIMARY"
	if l.PrimaryKey {
		key = "UNIQUE"
	}
	return "ALTER TABLE " + table.Name() + " ADD " + key + " KEY (" + column + ")"
}

// on returns a function that makes findings about a table.
func on(table *databases.Store) finder {
	return func(code string, severity Severity, message string, sql ...string) Finding {
		return Finding{Code: code, Severity: severity, Server: table.Label, Table: table.Plain(), Message: message, SQL: sql}
	}
}

type finder = func(code string, severity Severity, message string, sql ...string) Finding

// takesSegments reports whether any table takes ids from leaf_alloc, or would if leaf_alloc existed.
func (c *checker) takesSegments() bool {
	return len(c.Tags) > 0 || slices.ContainsFunc(c.Shards, func(s *survey.Shard) bool { return s.Config.Auto() })
}

// columns compares leaf_alloc's columns with Leaf's.
func (c *checker) columns(alloc survey.Alloc, here finder, alter string) {
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
			c.add(here("alloc-column", Error, c.say("It has no column %s.", want.name), alter+"ADD COLUMN "+want.name+" "+want.def))
		case !want.fits(col):
			null := ""
			if col.Nullable {
				null = c.text(", and may be NULL")
			}
			c.add(here("alloc-column", Error, c.say("Its column %s is of type %s%s.", want.name, col.Type, null), alter+"MODIFY COLUMN "+want.name+" "+want.def))
		}
	}
	updated, ok := alloc.Columns["update_time"]
	if !ok || !strings.Contains(updated.Extra, "on update") {
		verb := "ADD"
		if ok {
			verb = "MODIFY"
		}
		c.add(here("alloc-column", Note, c.text("It does not note when a row changed: Java Leaf's pages and leafsql tags show it."),
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

// kept checks whether a table can lose writes, or has triggers that change them.
func (c *checker) kept(here finder, prefix string, table *databases.Store, k survey.Kept, what, triggered string) {
	switch {
	case k.Engine == survey.View:
		f := here(prefix+"-engine", Warning, c.say("It is a view: whether the table behind it can lose %s is not seen.", what))
		f.Fix = "put that table in its place while no process runs"
		c.add(f)
	case k.Engine != "" && !strings.EqualFold(k.Engine, "InnoDB"):
		c.add(here(prefix+"-engine", Error, c.say("Its engine is %s, which can lose %s when the server crashes.", k.Engine, what), "ALTER TABLE "+table.Name()+" ENGINE = InnoDB"))
	}
	if len(k.Triggers) > 0 {
		f := here(prefix+"-trigger", Warning, c.say("Triggers stand on it (%s): %s.", strings.Join(k.Triggers, ", "), triggered))
		f.Fix = "drop them, if nothing else needs them"
		for _, name := range k.Triggers {
			f.SQL = append(f.SQL, "DROP TRIGGER "+quote.In(table.Database, name))
		}
		c.add(f)
	}
}

// durability checks the server of leaf_alloc. If the server loses a fetch, another process fetches the same
// range while the first process still uses it. If the rows are on another server, the rows with these ids exist
// as well.
func (c *checker) durability(store *databases.Store, here finder) {
	if !c.takesSegments() {
		return
	}
	elsewhere := slices.ContainsFunc(c.Shards, func(s *survey.Shard) bool { return s.ID != store.ID })
	c.forgetful(store, func(variable, when string) Finding {
		if elsewhere {
			return here("alloc-durability", Error, c.say("%s there, and the rows are on other servers: a range that was handed out is handed out again %s.", variable, when))
		}
		return here("alloc-durability", Warning, c.say("%s: %s, a range that a running process has is handed out to another one too, and then an INSERT fails with error 1062, and a REPLACE overwrites the other's row.", variable, when))
	})
}

// leaseTable checks the definition of leaf_worker, and its server.
func (c *checker) leaseTable() {
	if c.Leases == nil {
		return
	}
	table := c.Leases.Table
	here := on(table)
	if c.Leases.Exists && !c.Leases.Denied && c.Leases.Engine != survey.View {
		c.leaseColumns(here, table)
	}
	c.kept(here, "leases", table, c.Leases.Kept, c.text("a worker id that was taken, so that two processes have it,"), c.text("one that changes a row can give its worker id to two processes"))
	c.forgetful(table, func(variable, _ string) Finding {
		return here("leases-durability", Warning, c.say("%s: a crash can take back the worker ids that were taken last, so once the server was started again a process that starts waits for its first id, 135 s at the default lease.", variable))
	})
}

// leaseColumns checks the columns and the key of leaf_worker. Its fix creates a new table; to leases this is a
// registry that was wiped, for which they are safe.
func (c *checker) leaseColumns(here finder, table *databases.Store) {
	var wrong []string
	for _, want := range []struct{ name, types string }{
		{"worker_id", "int bigint"}, {"nonce", "char varchar"}, {"hw", "bigint"}, {"free", "tinyint smallint int bigint"}, {"owner", "text mediumtext longtext varchar"}, {"registry", "char varchar"},
	} {
		col, ok := c.Leases.Columns[want.name]
		typ, _, _ := strings.Cut(col.Type, "(")
		typ, _, _ = strings.Cut(typ, " ")
		switch {
		case !ok:
			wrong = append(wrong, c.say("it has no column %s", want.name))
		case !slices.Contains(strings.Fields(want.types), typ):
			wrong = append(wrong, c.say("its column %s is of type %s", want.name, col.Type))
		}
	}
	if len(wrong) == 0 {
		if !c.Leases.Unique {
			c.add(here("leases-column", Error, c.text("worker_id is neither the primary key nor unique: a worker id can get a second row, and is refused then."), addKey(table, "worker_id", c.Leases.Layout)))
		}
		return
	}
	f := here("leases-column", Error, c.say("No worker id can be had: %s.", strings.Join(wrong, ", ")),
		"RENAME TABLE "+table.Name()+" TO "+quote.In(table.Database, table.Table+"_old"), c.Leases.Create().SQL)
	f.Fix = "make the table anew; processes that start then wait for their first id, as after any loss of a registry"
	c.add(f)
}

// forgetful adds a finding for each variable that allows a crash to undo commits that the server has confirmed.
// In a cluster the other nodes still have the commits that one node lost.
func (c *checker) forgetful(store *databases.Store, finding func(variable, when string) Finding) {
	if provider := store.Global["wsrep_provider"]; strings.EqualFold(store.Global["wsrep_on"], "ON") && provider != "" && provider != "none" || store.Global["group_replication_group_name"] != "" {
		return
	}
	for _, name := range []string{"innodb_flush_log_at_trx_commit", "sync_binlog"} {
		value, when := store.Global[name], c.text("when the machine loses power")
		if name == "sync_binlog" && !strings.EqualFold(store.Global["log_bin"], "ON") || value == "1" || value == "" {
			continue
		}
		if name != "sync_binlog" && value == "0" {
			when = c.text("when the server crashes")
		}
		f := finding(c.say("%s is %s", name, value), when)
		f.SQL = []string{"SET GLOBAL " + name + " = 1"}
		f.Fix = "write it into the server's configuration as well"
		c.add(f)
	}
}
