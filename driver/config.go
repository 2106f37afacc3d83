package driver

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/leafsql/leafsql/driver/internal/rules"
	"github.com/leafsql/leafsql/idgen/segment"
	"github.com/leafsql/leafsql/idgen/snowflake"
	"github.com/leafsql/leafsql/idgen/worker"
)

// Config holds the parameters of a DSN, and settings that a DSN cannot express.
// Start from [NewConfig] or [ParseDSN], change fields, and pass it to
// [NewConnector] or [Wrap], which copy it. Comments give the DSN parameter of
// each field in parentheses.
type Config struct {
	// MySQL configures go-sql-driver, without leaf parameters. NewConnector
	// requires it. Wrap accepts nil, and otherwise reads only the database's name and
	// address, ClientFoundRows and InterpolateParams.
	MySQL *mysql.Config

	// Tables are the rules (leafTables). If empty, every table with a row in
	// leaf_alloc is filled (leafTables=auto).
	Tables []Rule
	// None disables filling (leafTables=none). Tables has to be empty then.
	None bool

	// Store is the DSN of the database that holds leaf_alloc and t_sequence
	// (leafStore). "" means the application's database.
	Store      string
	AllocTable string // leafAllocTable: [db.]table; "" means leaf_alloc
	Create     bool   // leafCreate: create missing tables of ids and their rows
	// SegmentStore, if not nil, replaces leaf_alloc as the source of segments.
	// Store, AllocTable and Create do not apply to segments then, and Tables must not
	// be empty unless None is set.
	SegmentStore segment.Store

	// Worker is the source of worker ids for snowflakes, as name(address)
	// (leafWorker): static(7), env(VAR), ordinal(), mysql(), or a source whose
	// package is imported, such as nacos(h1:8848,h2:8848). mysql() keeps leases in
	// the table leaf_worker next to leaf_alloc. "" is mysql().
	Worker string
	// WorkerOptions are the source's parameters. Their names lack the prefix, which
	// is "leaf" and the source's name: leafNacosGroup=x becomes Group: x.
	WorkerOptions map[string]string
	// WorkerSource, if not nil, opens the source instead of Worker. It may for
	// example call nacos.Open with the application's Nacos clients. It is called
	// when the first id is drawn, and again after a failure. Each Connector with a
	// WorkerSource has its own worker id; Connectors with equal Worker share one.
	WorkerSource func(context.Context) (worker.Source, error)
	// NewRegistry declares that the registry of worker ids is new and that no
	// other process uses it (leafNewRegistry). The process then does not wait until
	// unknown earlier leases have expired: 1.25 times the lease plus 60 s (135 s by
	// default). Set it for the first rollout only.
	NewRegistry bool

	// AnyClock allows taking a worker id if this machine's clock is more than a
	// minute ahead of the registry's (leafAnyClock). Set it if the registry's clock
	// is wrong.
	AnyClock bool
	// Snowflake is the layout (leafSnowflake). The zero value is snowflake.Leaf.
	Snowflake snowflake.Layout
	// State is a directory in which static, env and ordinal keep files to detect a
	// clock that was set back, or a second process on the host (leafState). It must
	// be on a local disk that is never copied or rolled back. "" disables these
	// checks. Other sources ignore it.
	State string
	// Lease is how long a worker id stays valid without contact to the registry
	// (leafLease), from 6 s to 1 h. All processes of a registry need the same
	// value. 0 means 60 s.
	Lease time.Duration

	// ResultOnly leaves SQL's LAST_INSERT_ID() unchanged: statements contain ids
	// as plain values, and only the Result returns them (leafLastInsertID=result).
	ResultOnly bool
	// RefuseAutoIncrement refuses a key column that still has AUTO_INCREMENT,
	// instead of logging a warning (leafAutoIncrement=refuse).
	RefuseAutoIncrement bool
	// Zero is the meaning of a 0 in the key column (leafZero): "fill" generates a key,
	// "keep" stores the 0 as under NO_AUTO_VALUE_ON_ZERO, and "" follows the session's
	// sql_mode, as an AUTO_INCREMENT column does. If the column still has AUTO_INCREMENT,
	// "keep" also follows the session's sql_mode, since the server would replace the 0.
	Zero string
	// UUID is the form of the keys of a uuid7 rule if the column's type allows text and
	// binary keys (leafUUID): "text", "binary", or "" to refuse such a column.
	UUID string
	// KeepExplicit leaves the counter unchanged when a row has an explicit key,
	// instead of raising it above that key (leafExplicit=keep). A generated id may
	// collide with that key later. When the table is first used, keys of 2^40 and
	// above are also ignored.
	KeepExplicit bool

	// Logger receives the few warnings about background events. nil is slog.Default().
	Logger *slog.Logger

	name string // leafConfig, for FormatDSN
}

// Kind is a kind of generator.
type Kind = rules.Kind

// Kinds of generators for a Rule.
const (
	Segment   = rules.Segment
	Snowflake = rules.Snowflake
	UUID7     = rules.UUID7
	Sequence  = rules.Sequence
)

// Rule names tables, their key column and its generator. It is one entry of
// leafTables, [db.]table[:column[:generator]] or ![db.]table. Database and Table
// may contain *. Kind is Segment (also if empty), Sequence, Snowflake or UUID7. Tag is the
// biz_tag or the name of the sequence. Exclude excludes the tables from all
// rules. Generator, if not nil, is used instead of Kind and Tag. A rule with * in
// Table skips tables without a single-column integer key, unless it names the
// Column.
type Rule = rules.Rule

// defaultLease is the default of leafLease.
const defaultLease = 60 * time.Second

// NewConfig returns a Config with go-sql-driver's defaults and leafTables=auto.
func NewConfig() *Config {
	return &Config{MySQL: mysql.NewConfig(), AllocTable: "leaf_alloc", Lease: defaultLease}
}

// Auto reports whether every table with a row in leaf_alloc is filled (leafTables=auto).
func (c *Config) Auto() bool { return !c.None && len(c.Tables) == 0 }

// Clone returns a copy. Changes to its fields, MySQL, Tables and WorkerOptions do not affect c.
func (c *Config) Clone() *Config {
	cp := *c
	if c.MySQL != nil {
		cp.MySQL = c.MySQL.Clone()
	}
	cp.Tables = slices.Clone(c.Tables)
	cp.WorkerOptions = maps.Clone(c.WorkerOptions)
	return &cp
}

// checkConfig returns a *ConfigError if cfg is invalid. It does not connect.
func checkConfig(cfg *Config) error {
	if cfg.None && len(cfg.Tables) > 0 {
		return configError("leafTables", "none with rules", "set Config.None to false, or Config.Tables to nil")
	}
	if cfg.Auto() && cfg.SegmentStore != nil {
		return configError("leafTables", "auto reads leaf_alloc, which Config.SegmentStore replaces", "name the tables")
	}
	for _, r := range cfg.Tables {
		if !r.Exclude && r.Kind == Sequence && cfg.SegmentStore != nil {
			return ruleError(r.String(), "sequences are rows of a table, and Config.SegmentStore has no table", "set Rule.Generator for the table, or leave SegmentStore unset")
		}
	}
	return nil
}

func (c *Config) logger() *slog.Logger {
	return cmp.Or(c.Logger, slog.Default())
}

var registered sync.Map // name -> *Config

// RegisterConfig registers a copy of cfg for DSNs with leafConfig=name. Use it for
// settings that a DSN cannot express: generators, a store, a source of worker ids, a
// logger. Parameters in the DSN take precedence, and cfg.MySQL is ignored. A later
// call with the same name replaces the Config for pools that are opened afterwards.
// RegisterConfig is safe for concurrent use.
func RegisterConfig(name string, cfg *Config) {
	registered.Store(name, cfg.Clone())
}
