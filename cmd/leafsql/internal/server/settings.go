package server

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/leafsql/leafsql/cmd/leafsql/internal/databases"
	"github.com/leafsql/leafsql/cmd/leafsql/internal/process"
	"github.com/leafsql/leafsql/internal/chinese"
	"github.com/leafsql/leafsql/internal/errprefix"
)

// envPrefix is the prefix of environment variables: -max-block is LEAFSQL_MAX_BLOCK.
const envPrefix = "LEAFSQL_"

// ReadConfig reads the settings of leafsql serve. Flags in args take precedence over environment variables, and
// both over the file of -config: YAML with the flags' names as keys, or Java Leaf's leaf.properties. With -h it
// writes the flags to out, in the language of texts, and returns flag.ErrHelp. Errors contain no values.
func ReadConfig(args []string, out io.Writer, texts chinese.Texts) (Config, error) {
	cfg := defaults
	fs := flag.NewFlagSet("leafsql serve", flag.ContinueOnError)
	fs.StringVar(&cfg.DSN, "dsn", "", "the `DSN` as mysql-leaf takes it, or env:NAME; each row of its leaf_alloc is a tag")
	fs.StringVar(&cfg.Listen, "listen", cfg.Listen, "`address` to serve at")
	fs.BoolVar(&cfg.NoSegments, "no-segments", false, "serve snowflakes alone")
	fs.BoolVar(&cfg.NoSnowflakes, "no-snowflakes", false, "serve ids of leaf_alloc alone")
	fs.StringVar(&cfg.TLSCert, "tls-cert", "", "`file` with the certificate in PEM, and those that lead to its authority")
	fs.StringVar(&cfg.TLSKey, "tls-key", "", "`file` with its key in PEM")
	fs.StringVar(&cfg.Token, "token", "", "the bearer token that requests must bring; other users see flags, so rather put it in the environment or the file")
	fs.DurationVar(&cfg.Timeout, "timeout", cfg.Timeout, "the longest a request waits for ids")
	fs.IntVar(&cfg.MaxBlock, "max-block", cfg.MaxBlock, "the most ids of one request")
	fs.IntVar(&cfg.MaxRequests, "max-requests", cfg.MaxRequests, "the most requests at a time, half of which may wait for ids")
	fs.IntVar(&cfg.MaxConnections, "max-connections", cfg.MaxConnections, "the most connections at a time")
	fs.DurationVar(&cfg.Drain, "drain", 0, "how long to serve on after SIGTERM, not ready any more")
	process.AddLogFormatFlag(fs, &cfg.LogJSON)
	file := fs.String("config", "", "`file` with settings: YAML with the flags' names as keys, or Java Leaf's leaf.properties")
	fs.SetOutput(io.Discard)
	if err := fs.Parse(args); errors.Is(err, flag.ErrHelp) {
		io.WriteString(out, texts.Sprintf("\nEach flag can also be set in the environment, as %sMAX_BLOCK for -max-block.\n\n", envPrefix))
		fs.VisitAll(func(f *flag.Flag) { f.Usage = texts.Text(f.Usage) })
		fs.SetOutput(out)
		fs.PrintDefaults()
		return cfg, err
	} else if err != nil {
		return cfg, fmt.Errorf("leafsql: serve: %w; leafsql serve -h lists the flags", err)
	}
	if fs.NArg() > 0 {
		return cfg, errors.New("leafsql: serve: it takes only flags; pass the DSN with -dsn, and leafsql serve -h lists the flags") // the argument is not shown: it may be a DSN
	}
	set := make(map[string]bool)
	fs.Visit(func(f *flag.Flag) { set[f.Name] = true })
	complete := func(from string, settings map[string]string) error { // sets the settings that are not set yet
		for _, name := range slices.Sorted(maps.Keys(settings)) {
			if fs.Lookup(name) == nil {
				return fmt.Errorf("leafsql: serve: %s: there is no setting %q; leafsql serve -h lists them", from, name)
			}
			if set[name] {
				continue
			}
			if fs.Set(name, settings[name]) != nil { // its error would show the value
				return fmt.Errorf("leafsql: serve: %s: the value of %s cannot be parsed; leafsql serve -h describes it", from, name)
			}
			set[name] = true
		}
		return nil
	}
	if err := complete("the environment", readEnvironment(fs)); err != nil {
		return cfg, err
	}
	if *file != "" {
		settings, unknown, err := readFile(*file)
		if err == nil {
			cfg.unknownKeys = strings.Join(unknown, ", ")
			err = complete(*file, settings)
		}
		if err != nil {
			return cfg, err
		}
	}
	if cfg.DSN != "" {
		var err error
		if cfg.DSN, err = databases.ResolveDSN(cfg.DSN); err != nil {
			return cfg, fmt.Errorf("leafsql: serve: %w", errprefix.Trim(err))
		}
	}
	if cfg.DSN == "" {
		return cfg, errors.New("leafsql: serve: no DSN; give -dsn 'user:password@tcp(127.0.0.1:3306)/database', " + envPrefix + "DSN, or a file with -config")
	}
	return cfg, nil
}

// readEnvironment returns the settings from environment variables, with the flags' names as keys.
func readEnvironment(fs *flag.FlagSet) map[string]string {
	settings := make(map[string]string)
	fs.VisitAll(func(f *flag.Flag) {
		if v := os.Getenv(envPrefix + strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))); v != "" {
			settings[f.Name] = v
		}
	})
	return settings
}

// readFile reads the settings of a file. unknown contains keys that may be typing mistakes.
func readFile(name string) (settings map[string]string, unknown []string, err error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, nil, fmt.Errorf("leafsql: serve: %w; name a file that can be read with -config", err)
	}
	if filepath.Ext(name) == ".properties" {
		settings, unknown, err = readLeafProperties(text)
	} else {
		settings, err = readYAML(text)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("leafsql: serve: %s: %w; leafsql serve -h lists the settings", name, err)
	}
	return settings, unknown, nil
}

// readYAML parses a mapping of names to scalar values, as they are written. Its errors contain no values.
func readYAML(text []byte) (map[string]string, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(text, &doc); err != nil {
		return nil, err
	}
	settings := make(map[string]string)
	if len(doc.Content) == 0 {
		return settings, nil
	}
	top := doc.Content[0]
	if top.Kind != yaml.MappingNode {
		return nil, errors.New("the settings are not written as name: value")
	}
	for i := 0; i < len(top.Content); i += 2 {
		name, value := top.Content[i], top.Content[i+1]
		if _, twice := settings[name.Value]; twice || value.Kind != yaml.ScalarNode {
			return nil, fmt.Errorf("line %d: each setting has one plain value", name.Line)
		}
		settings[name.Value] = value.Value
	}
	return settings, nil
}
