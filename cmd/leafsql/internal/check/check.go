// Package check finds problems with tables that get their keys from leaf_alloc, and with leaf_alloc and
// leaf_worker themselves, before a statement is refused or a key is issued twice.
//
//	s, err := survey.Take(ctx, set, "", nil)
//	report, err := check.Run(ctx, s, check.Options{})
//	for _, f := range report.Findings {
//		fmt.Println(f.Severity, f.Code, f.Message, f.SQL)
//	}
//
// It writes nothing except a temporary table, which it drops again, and looks up keys only through indexes.
// A finding is a problem or a note in the report. If the user cannot see an object, this is also a finding.
// Errors are for people: the command prints them.
package check

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/samber/lo"

	"github.com/leafsql/leafsql/cmd/leafsql/internal/databases"
	"github.com/leafsql/leafsql/cmd/leafsql/internal/survey"
	"github.com/leafsql/leafsql/internal/chinese"
	"github.com/leafsql/leafsql/internal/serverid"
)

// Options contain inputs of a check that a survey does not have. The zero value is valid.
type Options struct {
	Rates map[string]Rate // by tag; tags without an entry were not measured
	Texts chinese.Texts   // translations of findings

	Sprintf func(format string, args ...any) string // translates a format and formats it; nil: Texts.Sprintf
}

// A Report is the result of a check.
type Report struct {
	Time     time.Time `json:"time"`
	Store    Place     `json:"store"` // server of leaf_alloc
	Shards   []Place   `json:"shards"`
	Tables   []Table   `json:"tables"`
	Tags     []Tag     `json:"tags"` // all rows of leaf_alloc
	Findings []Finding `json:"findings"`
}

// A Place is one server.
type Place struct {
	Server  string `json:"server"` // address/database
	Version string `json:"version"`
	Table   string `json:"table,omitempty"` // leaf_alloc's name; only in Report.Store
}

// A Table is one configured table on one shard.
type Table struct {
	Server     string   `json:"server"`
	Table      string   `json:"table"`
	Key        string   `json:"key,omitempty"`
	Type       string   `json:"type,omitempty"`
	Generator  string   `json:"generator"`
	Tag        string   `json:"tag,omitempty"`
	HighestKey *int64   `json:"highest_key,string"` // null: unknown, or not needed for this kind of id
	NextID     *int64   `json:"next_id,string"`     // the tag's next id; null: the tag has no row
	Used       *float64 `json:"used"`               // used fraction of the column's ids, 0 … 1
	Years      *float64 `json:"years_left"`         // years until the column's ids are used up, at the measured rate; null: unknown
	Auto       bool     `json:"auto_increment"`     // the column still has AUTO_INCREMENT
	Why        string   `json:"unknown,omitempty"`  // the reason why the highest key is unknown
	Unfit      string   `json:"not_fit,omitempty"`  // the reason why rows of the table get no keys
}

// A Tag is one row of leaf_alloc.
type Tag struct {
	Tag     string     `json:"tag"`
	MaxID   int64      `json:"max_id,string"`
	Step    int64      `json:"step"`
	Updated *time.Time `json:"updated"`
	Rate    *float64   `json:"ids_per_second"` // null: not measured
}

// Status returns the command's exit code: 1 if there is an error or a warning, otherwise 2 if a check had no
// result, otherwise 0.
func (r *Report) Status() int {
	status := 0
	for _, f := range r.Findings {
		switch f.Severity {
		case Error, Warning:
			return 1
		case Unknown:
			status = 2
		}
	}
	return status
}

// Run checks a survey, and queries the servers for data that the survey does not contain. It fails if a query
// fails, and then returns no report.
func Run(ctx context.Context, s *survey.Survey, opts Options) (*Report, error) {
	c := &checker{Survey: s, opts: opts, unencodable: make(map[string]bool)}
	for _, step := range []func(context.Context) error{
		c.checkServers, c.checkVersions, c.checkRegistries, c.checkLayout, c.checkRights, c.checkRows, c.checkPrograms, c.checkTables, c.checkUnfilled, c.checkRules, c.checkShards,
	} {
		if err := step(ctx); err != nil {
			return nil, err
		}
	}
	sortFindings(c.findings)
	return c.buildReport(), nil
}

func (c *checker) buildReport() *Report {
	store := c.Set.Store
	r := &Report{
		Time:   time.Now().UTC().Truncate(time.Millisecond),
		Store:  Place{store.Label, store.Version, store.PlainName()},
		Tables: []Table{}, Findings: c.findings,
	}
	if r.Findings == nil {
		r.Findings = []Finding{}
	}
	rows := make(map[string]*survey.Row)
	for _, tag := range c.Tags {
		rows[tag.Name] = tag.Row
	}
	for _, shard := range c.Shards {
		r.Shards = append(r.Shards, Place{Server: shard.Label, Version: shard.Version})
		for _, t := range shard.Tables {
			r.Tables = append(r.Tables, c.newTable(t, rows[t.Tag]))
		}
	}
	r.Tags = NewTags(c.Rows, c.opts.Rates)
	return r
}

// NewTags returns leaf_alloc's rows in the form of a report.
func NewTags(rows []survey.Row, rates map[string]Rate) []Tag {
	tags := []Tag{}
	for _, row := range rows {
		tag := Tag{Tag: row.Tag, MaxID: row.MaxID, Step: row.Step}
		if !row.Updated.IsZero() {
			tag.Updated = &row.Updated
		}
		if rate, ok := rates[row.Tag]; ok {
			tag.Rate = &rate.PerSecond
		}
		tags = append(tags, tag)
	}
	return tags
}

func (c *checker) newTable(t *survey.Table, row *survey.Row) Table {
	out := Table{
		Server: t.Shard.Label, Table: t.Name(), Key: t.Column, Type: t.Type, Generator: string(t.Kind), Tag: t.Tag,
		Auto: t.AutoIncrement, Why: t.UnknownReason,
	}
	if t.Err != nil {
		out.Unfit = t.Err.Error()
		return out
	}
	if t.IsKeyKnown {
		out.HighestKey = &t.Top
	}
	if row != nil {
		out.NextID = &row.MaxID
	}
	if used, ok := c.usedFraction(t, row); ok {
		out.Used = &used
	}
	if years, ok := c.remainingYears(t, row); ok {
		out.Years = &years
	}
	return out
}

// checkServers checks the servers' settings, and that all shards share leaf_alloc and the worker ids.
func (c *checker) checkServers(ctx context.Context) error {
	seen := make(map[string]bool)
	for _, shard := range c.Shards {
		s := shard.Server
		if !seen[s.ID] {
			seen[s.ID] = true
			c.checkReadOnly(s.Label, s.ReadOnly())
			c.checkStrictness(s.Label, s.Global["sql_mode"])
			c.checkIncrement(s)
			c.checkRedirect(s)
		}
		if shard.Config.NewRegistry {
			c.add(Finding{Code: "new-registry", Severity: Warning, Server: s.Label,
				Message: "leafNewRegistry=true declares that no process ran before; if it stays in the DSN, processes do not wait after the registry was lost, and a worker id can be used twice.",
				Fix:     "remove leafNewRegistry from the DSN once the first process has run"})
		}
		if err := c.checkSameStore(ctx, shard); err != nil {
			return err
		}
		c.checkSameWorkers(shard)
	}
	if store := c.Set.Store; !seen[store.ID] {
		c.checkReadOnly(store.Label, store.ReadOnly())
	}
	return nil
}

func (c *checker) checkReadOnly(label string, readOnly bool) {
	if readOnly {
		c.add(Finding{Code: "read-only", Severity: Error, Server: label,
			Message: "The server is read_only: it is a replica, or was demoted.",
			Fix:     "use the primary's address in the DSN; if this is the primary, SET GLOBAL read_only = 0",
			SQL:     []string{"SET GLOBAL read_only = 0"}})
	}
}

func (c *checker) checkStrictness(label, mode string) {
	modes := strings.Split(mode, ",")
	if !slices.Contains(modes, "STRICT_TRANS_TABLES") && !slices.Contains(modes, "STRICT_ALL_TABLES") {
		c.add(Finding{Code: "sql-mode", Severity: Warning, Server: label,
			Message: "sql_mode is not strict: once AUTO_INCREMENT is removed, a writer without leafsql stores the key 0 and gets no error.",
			SQL:     addGlobalMode(mode, "STRICT_TRANS_TABLES")})
	}
}

// checkIncrement checks auto_increment_increment, with which some clients compute the ids of an INSERT of several rows.
func (c *checker) checkIncrement(s *databases.Server) {
	n := s.Global["auto_increment_increment"]
	if n == "1" || n == "" {
		return
	}
	f := Finding{Code: "increment", Severity: Warning, Server: s.Label,
		Message: c.sprintf("auto_increment_increment is %s: Connector/J, MariaDB Connector/J 2.7, MikroORM and GORM's autoIncrementIncrement compute the ids of several rows with it, so they return wrong ids; leafsql's ids are consecutive.", n),
		Fix:     "set it to 1 for these clients: sessionVariables=auto_increment_increment=1 in the URL of Connector/J, auto_increment_increment=1 in this DSN, no autoIncrementIncrement in GORM's tags; or for all clients, once no table has AUTO_INCREMENT (Galera: with wsrep_auto_increment_control=OFF)",
		SQL:     []string{"SET GLOBAL auto_increment_increment = 1"}}
	if s.Session["auto_increment_increment"] == "1" { // the DSN sets it
		f.Severity = Note
	}
	c.add(f)
}

// checkRedirect checks the variable with which MariaDB redirects clients to another address.
func (c *checker) checkRedirect(s *databases.Server) {
	if url := s.Global["redirect_url"]; url != "" {
		c.add(Finding{Code: "redirect", Severity: Warning, Server: s.Label,
			Message: c.sprintf("redirect_url is %s: clients that follow it bypass leafsql proxy, and their INSERTs are not filled.", url),
			Fix:     "empty it, or set permitRedirect=false in the URL of MariaDB Connector/J",
			SQL:     []string{"SET GLOBAL redirect_url = ''"}})
	}
}

// checkSameStore compares the leaf_alloc that a shard's DSN names with the leaf_alloc that the set uses.
func (c *checker) checkSameStore(ctx context.Context, shard *survey.Shard) error {
	theirs, ours, err := c.Set.DifferingStore(ctx, shard.Shard)
	if err != nil {
		return err
	}
	if theirs == "" {
		return c.checkUnusedStore(ctx, shard)
	}
	c.add(Finding{Code: "stores-differ", Severity: Error, Server: shard.Label,
		Message: c.sprintf("This shard's ids come from %s, those of the first shard from %s: both issue the same ids.", theirs, ours),
		Fix:     "give every shard's DSN the same leafStore and the same leafAllocTable"})
	return nil
}

// checkUnusedStore reports a leaf_alloc in a shard's database from which the configured tables take no ids.
func (c *checker) checkUnusedStore(ctx context.Context, shard *survey.Shard) error {
	store := c.Set.Store
	// Names of equal tables on the servers of one cluster are names of one table.
	if shard.SameName(shard.Database, store.Database) && (shard.ID == store.ID || serverid.InCluster(shard.Global) || shard.NoTriggers != "") {
		return nil
	}
	names, err := shard.List(ctx, "SELECT table_name FROM information_schema.tables WHERE table_schema = ? AND table_name = ?", shard.Database, store.Table)
	if len(names) > 0 {
		c.add(Finding{Code: "alloc-unused", Severity: Note, Server: shard.Label, Table: shard.Database + "." + names[0],
			Message: c.sprintf("The configured tables take their ids from %s on %s. A program that uses this table, for example because leafStore is missing in its DSN, can issue the same ids.", store.QuotedName(), store.Label),
			Fix:     "drop it, if no other program takes ids from it"})
	}
	return err
}

// checkSameWorkers compares a shard's source of worker ids with the first shard's.
func (c *checker) checkSameWorkers(shard *survey.Shard) {
	first := c.Shards[0]
	snowflakes := func(s *survey.Shard) bool {
		return lo.ContainsBy(s.Tables, func(t *survey.Table) bool { return t.Kind == "snowflake" })
	}
	if !shard.HasLeafParams || shard == first || !snowflakes(first) || !snowflakes(shard) {
		return
	}
	a, b := first.Config, shard.Config
	if a.Worker != b.Worker || a.Snowflake != b.Snowflake || !sameOptions(a.WorkerOptions, b.WorkerOptions) {
		c.add(Finding{Code: "workers-differ", Severity: Error, Server: shard.Label,
			Message: "leafWorker, its options or leafSnowflake are not those of the first shard's DSN: a process that uses both shards can use one worker id twice.",
			Fix:     "give every shard's DSN the same leafWorker, with the same options, and the same leafSnowflake"})
	}
}
