package check

import (
	"cmp"
	"slices"
)

// A Severity says what a finding asks for.
type Severity string

const (
	Error   Severity = "error"   // ids are refused, or can meet keys in use
	Warning Severity = "warning" // works today, and can go wrong
	Unknown Severity = "unknown" // could not be told
	Note    Severity = "note"    // good to know; nothing has to be done
)

// A Finding is one thing that is not as it should be.
type Finding struct {
	Code     string   `json:"code"`
	Severity Severity `json:"severity"`
	Server   string   `json:"server,omitempty"` // address/database
	Table    string   `json:"table,omitempty"`  // db.table
	Tag      string   `json:"tag,omitempty"`
	Message  string   `json:"message"`
	Fix      string   `json:"way,omitempty"` // what to do, where SQL does not say it all
	SQL      []string `json:"sql,omitempty"` // what mends it
}

// codes are all findings there are, in the order in which they are told: what mends one
// may need those before it mended.
var codes = []string{
	"read-only",          // the server takes no writes
	"server-old",         // a version that cannot fill INSERT … SELECT
	"server-bug",         // a version with a bug that costs keys
	"stores-differ",      // shards take ids from different places
	"workers-differ",     // shards take worker ids from different places
	"alloc-missing",      // there is no leaf_alloc
	"leases-missing",     // there is no leaf_worker
	"row-broken",         // a row cannot give ids
	"alloc-key",          // leaf_alloc can hold a tag twice
	"alloc-column",       // a column of leaf_alloc is not as Leaf's
	"alloc-engine",       // leaf_alloc is not safe in a crash
	"alloc-trigger",      // triggers stand on leaf_alloc
	"alloc-durability",   // a power cut can bring ranges back
	"alloc-binlog",       // a fail-over can bring ranges back, as rows get no marks
	"leases-column",      // a column or the key of leaf_worker is not as leafsql makes it
	"leases-engine",      // leaf_worker is not safe in a crash
	"leases-trigger",     // triggers stand on leaf_worker
	"leases-durability",  // a power cut can bring worker ids back
	"rights",             // this user lacks rights
	"row-missing",        // a tag has no row
	"row-too-low",        // the next id is not above the keys in use
	"key-unfit",          // the key cannot be filled
	"key-not-unique",     // two rows can have one key
	"key-text",           // the key looks like a UUID's, and gets numbers
	"key-small",          // the key column cannot hold the ids
	"key-filling",        // the ids of a key column run out
	"step-large",         // a fetch takes much of what a key column has left
	"rule-without-table", // a rule means no table
	"shards-differ",      // a table is not the same on all shards
	"auto-increment",     // a key still has AUTO_INCREMENT, or again
	"unfilled",           // no rule fills an AUTO_INCREMENT column
	"default-sequence",   // a key's default is a sequence
	"table-engine",       // the engine undoes no statement that fails
	"trigger-inserts",    // a trigger writes rows that get no id
	"trigger-sets-key",   // a trigger sets the key itself
	"routine-inserts",    // a routine writes rows that get no id
	"event-inserts",      // an event writes rows that get no id
	"view-inserts",       // a view takes rows that get no id
	"sql-mode",           // sql_mode changes what keys mean
	"increment",          // clients count ids by auto_increment_increment
	"redirect",           // clients connect past the proxy
	"new-registry",       // leafNewRegistry was left in
	"highest-unknown",    // the highest key cannot be told
	"hidden",             // this user does not see everything
	"tag-without-table",  // no table takes ids from a tag
	"row-unmarked",       // a fail-over can bring a row's next range back
}

// order sorts findings by their code's place, then by where they are.
func order(findings []Finding) {
	place := func(f Finding) int { return slices.Index(codes, f.Code) }
	slices.SortStableFunc(findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(place(a), place(b)), cmp.Compare(a.Server, b.Server), cmp.Compare(a.Table, b.Table), cmp.Compare(a.Tag, b.Tag))
	})
}
