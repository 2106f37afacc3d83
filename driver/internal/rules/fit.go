package rules

import (
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strings"

	"github.com/leafsql/leafsql/driver/internal/catalog"
	"github.com/leafsql/leafsql/driver/internal/insert"
	"github.com/leafsql/leafsql/internal/quote"
)

// lowestFarKey is the lowest key that does not affect the counter under leafExplicit=keep. Few counters reach this number,
// and snowflakes exceed it five minutes after their epoch.
const lowestFarKey = 1 << 40

// A Fit describes how a rule fits a table.
type Fit struct {
	Key     catalog.Column
	Highest int64 // the highest id that the key column can hold
	Near    int64 // the counter is compared only with keys below Near
	Integer bool  // the ids are integers and the key's type is an integer type
	Indexed bool  // an index begins with the key
	UUIDs   insert.UUIDForm
}

// Config is the part of a configuration that is about tables. driver.Config describes most of the fields.
type Config struct {
	Auto                bool
	Rules               []Rule
	KeepExplicit        bool
	UUID                string
	Create              bool
	RefuseAutoIncrement bool
	Foreign             bool         // leaf_alloc is in another database than the tables, so tables of several databases may use the same tags
	Logger              *slog.Logger // nil: slog.Default() at the time of the message
	ResultOnly          bool
	Zero                string // "", fill or keep
	Server              string // address of the server, "" if unknown
}

// Fit compares a table's columns with a rule. It returns nil without an error if the rule may
// name many tables and this table has no suitable key. The error is an *insert.Refusal.
func (cfg *Config) Fit(rule Rule, name catalog.Name, t *catalog.Table) (*Fit, error) {
	lenient := cfg.Auto || IsPattern(rule)
	key, err := keyColumn(rule, name, t.Columns)
	if err != nil {
		if lenient && rule.Column == "" {
			return nil, nil
		}
		return nil, err
	}
	f := &Fit{Key: key, Indexed: t.HasIndexOn(key.Name)}
	f.Highest, f.Integer = key.Highest()
	if rule.Kind == UUID7 && rule.Generator == nil {
		if f.UUIDs, err = cfg.uuidForm(name, key); err != nil && !lenient {
			return nil, err
		}
		f.Highest, f.Integer = math.MaxInt64, false
	}
	switch {
	case lenient && !f.Integer && f.UUIDs == insert.NoUUID, lenient && rule.Column == "" && key.IsGenerated():
		return nil, nil
	case f.Highest == 0:
		return nil, Refuse(name, key.Name, "a column of type "+key.Type+" cannot hold the ids", "make it BIGINT: "+ModifyText(name, key.Name, "BIGINT"))
	}
	if f.Near = f.Highest; cfg.KeepExplicit {
		f.Near = min(f.Near, lowestFarKey)
	}
	return f, nil
}

// uuidForm returns the form in which a key column holds UUIDs, or a refusal.
func (cfg *Config) uuidForm(name catalog.Name, key catalog.Column) (insert.UUIDForm, error) {
	switch typ, length, _ := key.ParseType(); {
	case typ == "uuid", (typ == "char" || typ == "varchar") && length >= 36:
		return insert.UUIDText, nil
	case (typ == "binary" || typ == "varbinary") && length == 16:
		return insert.UUIDBytes, nil
	case (typ == "binary" || typ == "varbinary") && length >= 36 && cfg.UUID == "text":
		return insert.UUIDText, nil
	case typ == "varbinary" && length > 16 && cfg.UUID == "binary":
		return insert.UUIDBytes, nil
	case (typ == "binary" || typ == "varbinary") && length > 16:
		return insert.NoUUID, Refuse(name, key.Name, "its type "+key.Type+" does not determine how it stores UUIDs", "make it BINARY(16) or CHAR(36), or set leafUUID=text or leafUUID=binary")
	}
	return insert.NoUUID, Refuse(name, key.Name, "a column of type "+key.Type+" cannot hold UUIDs", "make it BINARY(16), CHAR(36) or, on MariaDB, UUID")
}

// keyColumn returns the column that a rule names, or the table's primary key.
func keyColumn(rule Rule, name catalog.Name, columns []catalog.Column) (catalog.Column, error) {
	var keys []catalog.Column
	counted := "COLUMN"
	for _, col := range columns {
		if rule.Column != "" && strings.EqualFold(col.Name, rule.Column) {
			return col, nil
		}
		if col.Primary {
			keys = append(keys, col)
		}
		if col.AutoIncrement {
			counted = col.Name
		}
	}
	switch {
	case slices.Contains([]Kind{Segment, Sequence, Snowflake, UUID7}, Kind(rule.Column)):
		return catalog.Column{}, Refuse(name, rule.Column, "the table has no such column", "name the column before the generator: leafTables="+name.String()+":COLUMN:"+rule.Column)
	case rule.Column != "":
		return catalog.Column{}, Refuse(name, rule.Column, "the table has no such column, or this user has no right to see it", "correct the rule in leafTables, or GRANT INSERT on the column")
	case len(keys) == 0:
		return catalog.Column{}, Refuse(name, "", "it has no primary key, or this user has no right to see its column", "name the column to fill, leafTables="+name.String()+":COLUMN, GRANT INSERT on it, or leave the table out of leafTables")
	case len(keys) > 1:
		return catalog.Column{}, Refuse(name, "", fmt.Sprintf("its primary key has %d columns", len(keys)), "name the one to fill: leafTables="+name.String()+":"+counted)
	}
	return keys[0], nil
}

// Refuse returns a transient *insert.Refusal: once the table is fixed, the next statement works. column may be "".
func Refuse(name catalog.Name, column, reason, fix string) error {
	return &insert.Refusal{Table: name, Column: column, Reason: reason, Fix: fix, Transient: true}
}

// ModifyText returns the statement that changes the type of a key column.
func ModifyText(name catalog.Name, column, typ string) string {
	return "ALTER TABLE " + name.Quoted() + " MODIFY " + quote.Name(column) + " " + typ + " NOT NULL"
}
