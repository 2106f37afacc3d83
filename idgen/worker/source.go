package worker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/leafsql/leafsql/internal/spec"
)

// Source is an open registry of worker ids. Only Slots is required,
// and Inserts if it applies.
type Source struct {
	Slots Slots

	// Name names the registry in logs and errors, without secrets, such
	// as "Nacos n1:8848, namespace shop, service leafsql".
	Name string

	// Identity, if set, returns a text that changes whenever the registry may have lost
	// writes. An example is the uuid of the server that answers, if the last writes
	// are lost in a fail-over to another server. Identity is called before and after a
	// worker id is taken. The earlier owners of a worker id are unknown if its document was written
	// under another identity. A wipe is noticed even without Identity, because the registry's own
	// document is missing.
	Identity func(ctx context.Context) (string, error)

	// Inserts is set if a put succeeds whenever the document is missing, whatever version is expected, as in
	// Nacos. Then the puts of several processes that create a document may all succeed, and
	// a renewal restores a lost document as a side effect. Without Inserts, such a renewal is refused, and
	// the holder creates the document again; if several processes create it, only one of them succeeds.
	Inserts bool

	// Time, if set, returns the registry's time. It is called before a worker id is taken and
	// after this machine's clock has jumped. A large difference is logged and
	// shown, and a process with a clock more than a minute ahead takes no worker
	// id. An error is logged and has no other effect.
	Time func(ctx context.Context) (time.Time, error)

	// Last, if set, returns the worker id that this instance probably had before. It is called
	// before a search, which tries this worker id first.
	Last func(ctx context.Context) (worker int, ok bool)

	// OnChange, if set, is called in the background after a worker id was taken
	// (held is true) and after it was released or lost (held is false), one call at
	// a time, in that order. d is the worker id's document as it was last
	// confirmed. OnChange is meant for displays, such as an entry in a
	// console: no lease waits for it. If held is true, ctx ends with the lease,
	// otherwise after 2 s.
	OnChange func(ctx context.Context, worker int, d Doc, held bool)

	// Close, if set, is called when the closed Keeper no longer needs the source.
	Close func() error

	fixedID *int // the only worker id of static, env and ordinal; nil for other sources
}

func (s *Source) close() error {
	if s.Close == nil {
		return nil
	}
	return s.Close()
}

// Options holds the settings of a source by name. A DSN's parameter
// leafNacosNamespace reaches the source "nacos" as "Namespace": "leaf" and the
// source's name, in any case, are cut off.
type Options map[string]string

// Only returns an error if there are options other than the known ones. A source
// calls it first, so that a misspelt option is never ignored. The function passed to
// [Register] should return this error: package driver converts it to a *driver.ConfigError.
func (o Options) Only(known ...string) error {
	for _, k := range slices.Sorted(maps.Keys(o)) {
		if !slices.Contains(known, k) {
			return &spec.OptionError{Option: k, Reason: "no such parameter", Known: known}
		}
	}
	return nil
}

// parser parses the address and options of a source of one kind.
type parser = func(address string, opts Options) (open func(context.Context) (Source, error), err error)

var sources sync.Map // name → parser

// Register registers a source under a name, as database/sql's drivers are registered:
// in an init function of a package that applications import for its side effect.
// parse gets the address between the parentheses of a spec, such as
// "h1:8848,h2:8848". It must not connect: its error is returned by sql.Open, or by
// the first connection. Register panics if the name is already registered.
func Register(name string, parse func(address string, opts Options) (open func(context.Context) (Source, error), err error)) {
	if name == "" || parse == nil {
		panic("leafsql: worker.Register without a name or a function")
	}
	if _, dup := sources.LoadOrStore(name, parse); dup {
		panic("leafsql: worker.Register called twice for " + name)
	}
}

// sourcePackages maps the names of sources to the packages that programs have to import for them.
var sourcePackages = map[string]string{"nacos": "nacos", "etcd": "idgen/worker/etcd", "redis": "idgen/worker/redis", "zookeeper": "idgen/worker/zookeeper"}

// sourceNames returns the names of the registered sources, sorted.
func sourceNames() (names []string) {
	for name := range sources.Range {
		names = append(names, name.(string))
	}
	slices.Sort(names)
	return names
}

// Lookup returns a function that opens the source named by text, such as
// "static(7)" or "nacos(h1:8848,h2:8848)". It returns an error if the source is
// unknown, or rejects the address or an option. Lookup does not connect.
func Lookup(text string, opts Options) (open func(context.Context) (Source, error), err error) {
	name, address, err := spec.Parse(text)
	if err != nil {
		return nil, err
	}
	source, ok := sources.Load(name)
	if !ok {
		hint := " (forgotten import?)"
		if path, ok := sourcePackages[name]; ok {
			hint = fmt.Sprintf("; run go get github.com/leafsql/leafsql/%s, and import it for its side effect: import _ \"github.com/leafsql/leafsql/%[1]s\"", path)
		}
		return nil, fmt.Errorf("leafsql: worker source %q is unknown; registered are %s%s", name, strings.Join(sourceNames(), ", "), hint)
	}
	open, err = source.(parser)(address, opts)
	if option, ok := errors.AsType[*spec.OptionError](err); ok {
		option.Source = cmp.Or(option.Source, strings.ToUpper(name[:1])+name[1:])
	}
	return open, err
}
