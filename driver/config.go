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

// Config is what a DSN says, and what a DSN cannot carry. Start from
// [NewConfig] or [ParseDSN], change fields, and hand it to [NewConnector] or
// [Wrap], which copy it. The comments name the DSN's parameter.
type Config struct {
	// MySQL is the inner driver's own configuration, free of leaf parameters.
	// Wrap uses it only to learn the database's name and the flags
	// ClientFoundRows and InterpolateParams; it may be nil there.
	MySQL *mysql.Config

	// Tables are the rules (leafTables). Without any, every table is filled that has
	// a row in leaf_alloc (leafTables=auto).
	Tables []Rule
	// None fills nothing (leafTables=none). It goes with no Tables.
	None bool

	// Store (leafStore) is the DSN of the database that holds leaf_alloc and
	// t_sequence, "" for the same one.
	Store      string
	AllocTable string // leafAllocTable: [db.]table
	Create     bool   // leafCreate
	// SegmentStore replaces leaf_alloc as the source of segments. Store,
	// AllocTable and Create then mean nothing, and Tables have to name tables.
	SegmentStore segment.Store

	// Worker is the source of worker ids for snowflakes, name(address)
	// (leafWorker): static(7), env(VAR), ordinal(), mysql(), which keeps leases in
	// the table leaf_worker beside leaf_alloc, or one whose package is imported,
	// such as nacos(h1:8848,h2:8848). "" is mysql().
	Worker string
	// WorkerOptions are the source's own parameters, without leaf and its name:
	// leafNacosGroup=x is Group: x.
	WorkerOptions map[string]string
	// WorkerSource, when set, is used instead of Worker: it opens a source in Go,
	// such as nacos.Open with the clients of a registered service. It is called
	// when the first id is drawn, and again after a failure. Each Connector then
	// has a worker id of its own; those of one process with an equal Worker share
	// one.
	WorkerSource func(context.Context) (worker.Source, error)
	// NewRegistry declares that the registry of worker ids is new and nobody is
	// running, so that this start need not wait out unknown history, which takes
	// one and a quarter leases plus 60 s: 135 s by default (leafNewRegistry). For a
	// first roll-out; not to be left on.
	NewRegistry bool

	// AnyClock has a worker id taken though this machine's clock is more than a
	// minute ahead of the registry's (leafAnyClock). It is for a registry whose own
	// clock is wrong.
	AnyClock bool
	// Snowflake is the layout (leafSnowflake); the zero value is snowflake.Leaf.
	Snowflake snowflake.Layout
	// State is a directory for static, env and ordinal (leafState), which guards
	// against a clock set back and a second process on the host. It must be on a
	// local disk that is never copied or rolled back. "": none. Other sources
	// keep nothing there.
	State string
	// Lease is how long a worker id is held without the registry (leafLease),
	// 6 s … 1 h; one for all processes of a registry. 0 is 60 s.
	Lease time.Duration

	// ResultOnly leaves SQL's LAST_INSERT_ID() alone: statements carry their ids
	// as plain values, and only the Result knows them (leafLastInsertID=result).
	ResultOnly bool
	// RefuseAutoIncrement refuses a key column that still has AUTO_INCREMENT,
	// instead of a warning (leafAutoIncrement=refuse).
	RefuseAutoIncrement bool
	// Zero is what a 0 in the key column means (leafZero): "fill" generates a key, "keep"
	// stores the 0 as under NO_AUTO_VALUE_ON_ZERO, and "" leaves that to the session's
	// sql_mode, as an AUTO_INCREMENT column does. A column that still is AUTO_INCREMENT
	// leaves "keep" to the session, too: the server would replace the 0.
	Zero string
	// UUID says how a column holds the keys of a uuid7 rule where its type does
	// not tell (leafUUID): "text", "binary", or "" to refuse such a column.
	UUID string
	// KeepExplicit leaves the counter where it is when a row brings its own key,
	// instead of moving it above that key (leafExplicit=keep). A generated id may
	// meet that key later. Nor is the counter held against keys of 2^40 and above
	// when the table is first used.
	KeepExplicit bool

	// Logger gets the few warnings of background events; nil: slog.Default().
	Logger *slog.Logger

	name string // leafConfig, kept for FormatDSN
}

// A Kind is a kind of generator.
type Kind = rules.Kind

// The kinds of generator that a Rule can name.
const (
	Segment   = rules.Segment
	Snowflake = rules.Snowflake
	UUID7     = rules.UUID7
	Sequence  = rules.Sequence
)

// A Rule names tables, their key column and its generator: one entry of
// leafTables, [db.]table[:column[:generator]] or ![db.]table. Database and Table
// may hold *, Kind is Segment, Sequence, Snowflake or UUID7, Tag is the biz_tag or
// the sequence's name, Exclude takes the tables out, and a Generator makes the ids
// instead of Kind and Tag. A rule with * in Table leaves out tables that have no
// single-column integer key, unless it names the Column.
type Rule = rules.Rule

// defaultLease is leafLease's default.
const defaultLease = 60 * time.Second

// NewConfig returns the defaults: the inner driver's, and leafTables=auto.
func NewConfig() *Config {
	return &Config{MySQL: mysql.NewConfig(), AllocTable: "leaf_alloc", Lease: defaultLease}
}

// Auto reports whether every table is filled that has a row in leaf_alloc (leafTables=auto).
func (c *Config) Auto() bool { return !c.None && len(c.Tables) == 0 }

// Clone returns a copy that shares nothing that can be changed with c.
func (c *Config) Clone() *Config {
	cp := *c
	if c.MySQL != nil {
		cp.MySQL = c.MySQL.Clone()
	}
	cp.Tables = slices.Clone(c.Tables)
	cp.WorkerOptions = maps.Clone(c.WorkerOptions)
	return &cp
}

// check finds what is wrong with a Config before anything connects.
func check(cfg *Config) error {
	if cfg.None && len(cfg.Tables) > 0 {
		return configError("leafTables", "none with rules", "set Config.None to false, or Config.Tables to nil")
	}
	if cfg.Auto() && cfg.SegmentStore != nil {
		return configError("leafTables", "auto reads leaf_alloc, which a SegmentStore of one's own replaces", "name the tables")
	}
	for _, r := range cfg.Tables {
		if !r.Exclude && r.Kind == Sequence && cfg.SegmentStore != nil {
			return ruleError(r.String(), "sequences are rows of a table, and a SegmentStore of one's own has none", "take Rule.Generator for the table, or leave SegmentStore out")
		}
	}
	return nil
}

func (c *Config) logger() *slog.Logger {
	return cmp.Or(c.Logger, slog.Default())
}

var registered sync.Map // name -> *Config

// RegisterConfig gives cfg a name that DSNs use as leafConfig=name, for what
// a string cannot carry: generators, a store, a source of worker ids, a logger. A parameter
// that stands in the DSN as well counts there. Its MySQL part is not used. A second
// call with the same name counts for pools that are opened afterwards.
func RegisterConfig(name string, cfg *Config) {
	registered.Store(name, cfg.Clone())
}
