package check

import (
	"cmp"
	"slices"
)

// A Severity is the urgency of a finding.
type Severity string

const (
	Error   Severity = "error"   // ids are refused, or can collide with keys in use
	Warning Severity = "warning" // INSERTs work today, but can fail later
	Unknown Severity = "unknown" // the check had no result
	Note    Severity = "note"    // information; no action is needed
)

// A Finding is a problem, or a note.
type Finding struct {
	Code     string   `json:"code"`
	Severity Severity `json:"severity"`
	Server   string   `json:"server,omitempty"` // address/database
	Table    string   `json:"table,omitempty"`  // db.table
	Tag      string   `json:"tag,omitempty"`
	Message  string   `json:"message"`
	Fix      string   `json:"way,omitempty"` // the action, if SQL alone is not enough
	SQL      []string `json:"sql,omitempty"` // statements that fix the problem
	Migrate  bool     `json:"-"`             // leafsql migrate fixes the problem
}

// codes are the codes of all findings, in the order of a report: a fix may depend on the fixes before it.
var codes = []string{
	"read-only",            // the server accepts no writes
	"server-old",           // a version that cannot fill INSERT … SELECT
	"server-bug",           // a version with a bug that replaces keys by NULL
	"stores-differ",        // shards take ids from different tables
	"workers-differ",       // shards take worker ids from different sources
	"alloc-missing",        // leaf_alloc is missing
	"leases-missing",       // leaf_worker is missing
	"registry-unreachable", // the registry of worker ids cannot be read
	"registry-missing",     // the registry of worker ids does not exist yet
	"row-broken",           // a row that issues no ids
	"alloc-key",            // leaf_alloc can hold a tag twice
	"alloc-column",         // a column of leaf_alloc differs from Leaf's
	"alloc-engine",         // leaf_alloc is not safe in a crash
	"alloc-trigger",        // leaf_alloc has triggers
	"alloc-durability",     // after a power cut, ranges can be issued again
	"alloc-binlog",         // rows get no marks, so ranges can be issued again after a fail-over
	"leases-column",        // a column or the key of leaf_worker differs from leafsql's
	"leases-engine",        // leaf_worker is not safe in a crash
	"leases-trigger",       // leaf_worker has triggers
	"leases-durability",    // after a power cut, worker ids can be leased twice
	"rights",               // the user lacks rights
	"row-missing",          // a tag has no row
	"row-too-low",          // the next id is not above the keys in use
	"key-unfit",            // the key column cannot get leafsql's ids
	"key-not-unique",       // two rows can have the same key
	"key-auto-random",      // TiDB generates the key and accepts no other
	"key-text",             // the key's type is that of a UUID, but it gets numbers
	"key-small",            // the key column cannot hold the ids
	"key-filling",          // most ids of a key column are used
	"step-large",           // a fetch takes a large part of a key column's remaining ids
	"rule-without-table",   // a rule matches no table
	"shards-differ",        // a table differs between shards
	"auto-increment",       // a key still has AUTO_INCREMENT, or has it again
	"unfilled",             // no rule of leafTables includes a table with an AUTO_INCREMENT column
	"default-sequence",     // a key's default is a sequence
	"table-engine",         // the engine cannot roll back a failed statement
	"trigger-inserts",      // a trigger writes rows that get no id
	"trigger-sets-key",     // a trigger sets the key itself
	"routine-inserts",      // a routine writes rows that get no id
	"event-inserts",        // an event writes rows that get no id
	"view-inserts",         // rows inserted through a view get no id
	"sql-mode",             // sql_mode changes the meaning of keys
	"increment",            // clients compute ids with auto_increment_increment
	"redirect",             // clients are redirected past the proxy
	"new-registry",         // leafNewRegistry is still in the DSN
	"highest-unknown",      // the highest key is unknown
	"hidden",               // the user cannot see everything
	"tag-without-table",    // no table gets ids from a tag
	"row-unmarked",         // a row has no mark, so its next range can be issued again after a fail-over
	"alloc-unused",         // a shard has a leaf_alloc that the tables do not use
}

// sortFindings sorts findings by the position of their code, then by server, table and tag.
func sortFindings(findings []Finding) {
	place := func(f Finding) int { return slices.Index(codes, f.Code) }
	slices.SortStableFunc(findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(place(a), place(b)), cmp.Compare(a.Server, b.Server), cmp.Compare(a.Table, b.Table), cmp.Compare(a.Tag, b.Tag))
	})
}
