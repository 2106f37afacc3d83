package driver

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/go-sql-driver/mysql"
	"github.com/samber/lo"

	"github.com/leafsql/leafsql/idgen/snowflake"
	"github.com/leafsql/leafsql/internal/errprefix"
	"github.com/leafsql/leafsql/internal/quote"
	"github.com/leafsql/leafsql/internal/spec"
)

// param is a leaf parameter of a DSN, with functions that read it into a Config and
// write it from one.
type param struct {
	name  string
	read  func(c *Config, value string) error
	write func(c *Config) string
}

// params lists all parameters except those of worker sources. leafConfig is
// first: other parameters override the registered Config.
var params = []param{
	{"leafConfig", readConfigName, func(c *Config) string { return c.name }},
	{"leafTables", readTables, writeTables},
	textParam("leafStore", checkStore, func(c *Config) *string { return &c.Store }),
	textParam("leafAllocTable", checkAllocTable, func(c *Config) *string { return &c.AllocTable }),
	choiceParam("leafCreate", "false", "true", func(c *Config) *bool { return &c.Create }),
	choiceParam("leafAnyClock", "false", "true", func(c *Config) *bool { return &c.AnyClock }),
	choiceParam("leafNewRegistry", "false", "true", func(c *Config) *bool { return &c.NewRegistry }),
	{"leafWorker", readWorker, func(c *Config) string { return c.Worker }},
	{"leafSnowflake", readLayout, func(c *Config) string {
		return lo.Ternary(c.Snowflake == snowflake.Layout{}, "", c.Snowflake.String())
	}},
	textParam("leafState", acceptAny, func(c *Config) *string { return &c.State }),
	{"leafLease", readLease, func(c *Config) string { return cmp.Or(c.Lease, defaultLease).String() }},
	choiceParam("leafLastInsertID", "session", "result", func(c *Config) *bool { return &c.ResultOnly }),
	choiceParam("leafAutoIncrement", "allow", "refuse", func(c *Config) *bool { return &c.RefuseAutoIncrement }),
	choiceParam("leafExplicit", "raise", "keep", func(c *Config) *bool { return &c.KeepExplicit }),
	textParam("leafUUID", checkOneOf("leafUUID", "text", "", "binary"), func(c *Config) *string { return &c.UUID }),
	textParam("leafZero", checkOneOf("leafZero", "fill", "", "keep"), func(c *Config) *string { return &c.Zero }),
}

// ParseDSN parses a DSN: go-sql-driver's, with additional parameters that begin with
// leaf. The result's MySQL field contains none of these. The error is a *ConfigError for a
// leaf parameter, or go-sql-driver's. Errors never contain the DSN, which may contain
// a password.
func ParseDSN(dsn string) (*Config, error) {
	if err := checkSwallowed(dsn); err != nil {
		return nil, err
	}
	inner, err := mysql.ParseDSN(dsn)
	if err != nil {
		return nil, err
	}
	_, list, _ := strings.Cut(dsn[strings.LastIndexByte(dsn, '/')+1:], "?")
	for text := range strings.SplitSeq(list, "&") { // go-sql-driver ignores a parameter without a value
		if strings.HasPrefix(text, "leaf") && !strings.Contains(text, "=") {
			return nil, configError(text, "it has no value", "write it as name=value")
		}
	}
	cfg := NewConfig()
	own := make(map[string]string)
	for k, v := range inner.Params {
		if strings.HasPrefix(k, "leaf") {
			if strings.Count(dsn, "?"+k+"=")+strings.Count(dsn, "&"+k+"=") > 1 { // go-sql-driver would use the last one
				return nil, repeatedError(k)
			}
			own[k] = v
			delete(inner.Params, k)
		}
	}
	for _, p := range params {
		if v, ok := own[p.name]; ok {
			if err := p.read(cfg, v); err != nil {
				return nil, err
			}
		}
		delete(own, p.name)
	}
	cfg.MySQL = inner
	if len(inner.Params) == 0 {
		inner.Params = nil
	}
	return cfg, cfg.readWorkerOptions(own)
}

// leafParam matches the name of a leaf parameter with its equals sign, such as "leafTables=".
var leafParam = regexp.MustCompile(`\bleaf[A-Z][A-Za-z]*=`)

// checkSwallowed returns a *ConfigError if a leaf parameter became part of the user,
// password, address or database name. go-sql-driver cuts a DSN at its last slash, so
// with an unescaped slash in a value, parameters before it become part of these fields.
func checkSwallowed(dsn string) error {
	slash := strings.LastIndexByte(dsn, '/')
	database, _, _ := strings.Cut(dsn[slash+1:], "?")
	if m := leafParam.FindString(dsn[:slash+1] + database); m != "" {
		return configError(strings.TrimSuffix(m, "="), "it was read as part of the user, password, address or database, because a DSN is split at its last slash",
			"write / as %2F in the value of every parameter, and put parameters after the database and a ?")
	}
	return nil
}

// readWorkerOptions reads the parameters of the worker source, such as leafNacosGroup
// with leafWorker=nacos(…). Any other parameter is unknown and an error.
func (c *Config) readWorkerOptions(own map[string]string) error {
	name, _, _ := strings.Cut(c.Worker, "(")
	prefix, options := "leaf"+name, make(map[string]string)
	for _, k := range slices.Sorted(maps.Keys(own)) {
		if name == "" || len(k) <= len(prefix) || !strings.EqualFold(k[:len(prefix)], prefix) {
			known := lo.Map(params, func(p param, _ int) string { return p.name })
			return configError(k, "no such parameter",
				"known are "+strings.Join(known, ", ")+", and options of leafWorker's source, such as leafNacosGroup with leafWorker=nacos(…)")
		}
		if _, twice := options[k[len(prefix):]]; twice { // two names that differ only in letter case
			return repeatedError(k)
		}
		options[k[len(prefix):]] = own[k]
	}
	if len(options) > 0 {
		c.WorkerOptions = lo.Assign(c.WorkerOptions, options)
	}
	return nil
}

func repeatedError(name string) error {
	return configError(name, "it is set twice", "keep one of them")
}

// FormatDSN returns a DSN that ParseDSN reads back as an equal Config, except for Go
// values (SegmentStore, WorkerSource, Logger and Rule.Generator). It contains passwords
// in plain text.
func (c *Config) FormatDSN() string {
	inner := mysql.NewConfig()
	if c.MySQL != nil {
		inner = c.MySQL.Clone()
	}
	if inner.Params == nil {
		inner.Params = make(map[string]string)
	}
	standard := NewConfig() // meaning of a DSN without parameters
	if registered, ok := registered.Load(c.name); ok {
		standard = registered.(*Config)
	}
	for _, p := range params {
		if v := p.write(c); v != p.write(standard) && (v != "" || c.name != "") {
			inner.Params[p.name] = v
		}
	}
	if name, _, ok := strings.Cut(c.Worker, "("); ok && name != "" {
		if !maps.Equal(c.WorkerOptions, standard.WorkerOptions) {
			inner.Params["leafWorker"] = c.Worker // without it, the registered options that c lacks would remain
		}
		for k, v := range c.WorkerOptions {
			inner.Params["leaf"+strings.ToUpper(name[:1])+name[1:]+k] = v
		}
	}
	return inner.FormatDSN()
}

// String returns a description of c without secrets.
func (c *Config) String() string {
	s := "leafsql"
	if c.MySQL != nil {
		s += fmt.Sprintf(" %s(%s)/%s", c.MySQL.Net, c.MySQL.Addr, c.MySQL.DBName)
	}
	return s + " leafTables=" + writeTables(c)
}

// GoString returns the same as String, so that %#v does not show secrets.
func (c *Config) GoString() string { return c.String() }

func readConfigName(c *Config, v string) error {
	reg, ok := registered.Load(v)
	if !ok {
		return configError("leafConfig", fmt.Sprintf("no Config is registered as %q", v), "call driver.RegisterConfig before sql.Open")
	}
	*c = *reg.(*Config).Clone()
	c.name = v
	return nil
}

func readTables(c *Config, v string) (err error) {
	if c.None, c.Tables = v == "none", nil; v != "auto" && !c.None {
		c.Tables, err = parseRules(v)
	}
	return err
}

func writeTables(c *Config) string {
	switch {
	case c.Auto():
		return "auto"
	case c.None:
		return "none"
	}
	return strings.Join(lo.Map(c.Tables, func(r Rule, _ int) string { return r.String() }), ",")
}

func checkStore(v string) error {
	if strings.Contains(v, "|") {
		return configError("leafStore", "it has several stores, which version 0.2 does not support", "stop all writers, run leafsql init -from-stores 'A|B|C', and name one store")
	}
	if err := checkSwallowed(v); err != nil {
		return err
	}
	if _, err := mysql.ParseDSN(v); err != nil {
		return configError("leafStore", err.Error(), "write a go-sql-driver DSN, with every / written as %2F")
	}
	return nil
}

func checkAllocTable(v string) error {
	if _, table := quote.Split(v); table == "" || strings.HasPrefix(v, ".") {
		return configError("leafAllocTable", "it is not a table name", "write [db.]table")
	}
	return nil
}

func readWorker(c *Config, v string) error {
	registered, _, _ := spec.Parse(c.Worker)
	source, _, err := spec.Parse(v)
	if err != nil {
		return configError("leafWorker", "it is not of the form name(address)", "write for example static(7) or nacos(127.0.0.1:8848)")
	}
	if source != registered {
		c.WorkerOptions = nil // the options of a registered Config belong to another source
	}
	c.Worker = v
	return nil
}

// checkOneOf returns a function that accepts only the values of first and second. In the hint of its error, note follows first.
func checkOneOf(name, first, note, second string) func(string) error {
	return func(v string) error {
		if v != first && v != second {
			return configError(name, fmt.Sprintf("the value %q is not allowed", v), "write "+first+note+" or "+second)
		}
		return nil
	}
}

func readLease(c *Config, v string) error {
	d, err := time.ParseDuration(v)
	if err != nil || d < 6*time.Second || d > time.Hour {
		return configError("leafLease", "it is not a duration from 6 seconds to an hour", "write for example 60s")
	}
	c.Lease = d
	return nil
}

func readLayout(c *Config, v string) (err error) {
	if v == "" {
		c.Snowflake = snowflake.Layout{}
	} else if c.Snowflake, err = snowflake.ParseLayout(v); err != nil {
		return configError("leafSnowflake", errprefix.TrimText(err), "")
	}
	return nil
}

func acceptAny(string) error { return nil }

func textParam(name string, check func(value string) error, field func(*Config) *string) param {
	return param{name,
		func(c *Config, v string) error {
			*field(c) = v
			return check(v)
		},
		func(c *Config) string { return *field(c) }}
}

// choiceParam returns a parameter with two values: off, which is the default, and on.
func choiceParam(name, off, on string, field func(*Config) *bool) param {
	return param{name,
		func(c *Config, v string) error {
			*field(c) = v == on
			return checkOneOf(name, off, " (the default)", on)(v)
		},
		func(c *Config) string { return lo.Ternary(*field(c), on, off) }}
}

// parseRules parses a value of leafTables other than auto and none.
func parseRules(s string) ([]Rule, error) {
	var rules []Rule
	for entry := range strings.SplitSeq(s, ",") {
		r, err := parseRule(strings.TrimSpace(entry))
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(rules, func(o Rule) bool { return o.Database == r.Database && o.Table == r.Table }) {
			return nil, ruleError(entry, "two rules have the same table", "keep one of them")
		}
		rules = append(rules, r)
	}
	return rules, nil
}

func parseRule(s string) (Rule, error) {
	var r Rule
	var bare string
	bare, r.Exclude = strings.CutPrefix(s, "!")
	name, rest, more := strings.Cut(bare, ":")
	column, generator, named := strings.Cut(rest, ":")
	r.Column = column
	r.Database, r.Table = quote.Split(name)
	switch {
	case strings.HasPrefix(name, "."):
		return r, ruleError(s, "the database before the dot is empty", "write db.table or table")
	case r.Table == "":
		return r, ruleError(s, "it names no table", "write [db.]table[:column[:generator]]")
	case strings.HasSuffix(s, ":"):
		return r, ruleError(s, "it ends with a colon", "write [db.]table[:column[:generator]]")
	case strings.ContainsAny(s, ";"):
		return r, ruleError(s, "rules are separated by commas", "write a , instead of the ;, or a * if the name has a ;")
	case strings.ContainsAny(name, "`'\"") || strings.ContainsFunc(name, unicode.IsSpace):
		return r, ruleError(s, "it has a quote or a space", "write [db.]table[:column[:generator]] without quotes, and commas between rules; a * matches such parts of a name")
	case r.Exclude && more:
		return r, ruleError(s, "a rule that excludes tables cannot have a column", "write ![db.]table")
	case r.Table == "auto" || r.Table == "none":
		return r, ruleError(s, r.Table+" cannot be combined with rules", "write leafTables="+r.Table+", or rules only")
	}
	switch kind, arg, ok := strings.Cut(generator, "("); {
	case r.Exclude:
	case !named, Kind(generator) == Segment:
		r.Kind = Segment
	case Kind(generator) == Snowflake, Kind(generator) == UUID7:
		r.Kind = Kind(generator)
	case ok && (Kind(kind) == Segment || Kind(kind) == Sequence) && strings.HasSuffix(arg, ")") && len(arg) > 1:
		r.Kind, r.Tag = Kind(kind), arg[:len(arg)-1]
		if len(r.Tag) > 128 {
			return r, ruleError(s, "the tag is longer than 128 characters, the size of its column", "shorten it")
		}
	default:
		return r, ruleError(s, fmt.Sprintf("unknown generator %q", generator), "known are segment, segment(TAG), sequence(NAME), snowflake and uuid7")
	}
	return r, nil
}

func ruleError(rule, reason, way string) error {
	return configError("leafTables", fmt.Sprintf("rule %q: %s", rule, reason), way)
}
