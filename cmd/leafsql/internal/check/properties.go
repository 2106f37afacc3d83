package check

import (
	"slices"

	"github.com/leafsql/leafsql/cmd/leafsql/internal/survey"
	"github.com/leafsql/leafsql/driver"
	"github.com/leafsql/leafsql/internal/quote"
)

// textKeyTypes are the types of keys that can hold UUIDs as text.
var textKeyTypes = []string{"char(36)", "varchar(36)"}

// checkProperties checks a table's engine and its key.
func (c *checker) checkProperties(t *survey.Table) {
	null := ""
	if t.Nullable {
		null = c.translate(" It may also be NULL.")
	}
	switch {
	case !t.Unique && !t.UniqueWithOthers:
		f := newTableFinding("key-not-unique", Warning, t)
		f.Message = c.sprintf("No unique index has %s: leafsql issues no id twice, but nothing prevents another writer from storing a key twice.%s", t.Column, null)
		f.SQL = []string{"ALTER TABLE " + t.QuotedName() + " ADD UNIQUE KEY (" + quote.Name(t.Column) + ")"}
		c.add(f)
	case !t.Unique || t.Nullable:
		f := newTableFinding("key-not-unique", Note, t)
		f.Message = c.sprintf("%s is unique only together with other columns.%s", t.Column, null)
		if t.Unique {
			f.Message = c.sprintf("%s may be NULL: rows may have no key.", t.Column)
		}
		c.add(f)
	}
	if t.AutoRandom {
		f := newTableFinding("key-auto-random", Error, t)
		f.Message = c.sprintf("%s is AUTO_RANDOM: TiDB refuses every INSERT with a key (error 8216).", t.Column)
		f.Fix = "move the rows into a table with PRIMARY KEY (…) NONCLUSTERED, SHARD_ROW_ID_BITS and PRE_SPLIT_REGIONS, which spread the rows as AUTO_RANDOM does, or add allow_auto_random_explicit_insert=1 to the DSN"
		c.add(f)
	}
	if slices.Contains(textKeyTypes, t.Type) && (t.Kind == driver.Segment || t.Kind == driver.Snowflake) {
		f := newTableFinding("key-text", Warning, t)
		f.Message = c.sprintf("Its type %s is one for UUIDs, but it gets numbers such as '1000'.", t.Type)
		f.Fix = c.sprintf("write %s:%s:uuid7 in leafTables to fill it with UUIDs, or make it BIGINT", t.ShardName(), t.Column)
		c.add(f)
	}
	if t.Sequence {
		f := newTableFinding("default-sequence", Warning, t)
		f.Message = "Its default is the next value of a sequence: a writer without leafsql can use ids that leafsql issues."
		if !c.waitsForPrograms(&f) {
			f.Fix = "once every writer uses mysql-leaf"
			f.SQL = []string{"ALTER TABLE " + t.QuotedName() + " ALTER COLUMN " + quote.Name(t.Column) + " DROP DEFAULT"}
		}
		c.add(f)
	}
	if t.Engine != "" && !t.Transactional {
		f := newTableFinding("table-engine", Note, t)
		f.Message = c.sprintf("Its engine %s cannot roll back: an INSERT of several rows that fails leaves some of them.", t.Engine)
		f.SQL = []string{"ALTER TABLE " + t.QuotedName() + " ENGINE = InnoDB"}
		c.add(f)
	}
}
