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

// Source is an opened place where worker ids come from. Only Slots is needed,
// and Inserts where it applies.
type Source struct {
	Slots Slots

	// Name says in logs and errors where the registry is, without secrets, such
	// as "Nacos n1:8848, namespace shop, service leafsql".
	Name string

	// Identity, if set, gives a text that is another one whenever what the
	// registry holds may be older than the truth: the uuid of the server that
	// answers, where an asynchronous fail-over loses its last writes. It is
	// asked before and after a take. Documents written under another identity
	// are then unknown history. A wipe needs none: that the registry's own
	// document is gone shows it.
	Identity func(ctx context.Context) (string, error)

	// Inserts says that a missing document takes a put at any version, as Nacos'
	// does, and that of several who create a document more than one may be told
	// true. There a renewal writes a lost document again unasked. Elsewhere it is
	// refused, and the holder creates the document, in which only one process may
	// succeed.
	Inserts bool

	// Time, if set, gives the registry's clock. It is asked before each take and
	// when this machine's clock has jumped. That they are far apart is logged and
	// shown, and a process whose clock is more than a minute ahead takes no worker
	// id. An error stops nobody; it is logged.
	Time func(ctx context.Context) (time.Time, error)

	// Last, if set, is a hint which worker id this instance had before, asked
	// before a search. It is tried first and proves nothing.
	Last func(ctx context.Context) (worker int, ok bool)

	// OnChange, if set, is called in the background after a worker id was taken
	// (held true) and after it was given back or lost (held false), one call at
	// a time, in that order; d is its document as of the take, or as last
	// confirmed. It is for what people want to see, such as an entry in a
	// console: no lease waits for it. The first call may go on until its ctx
	// ends, which it does with the lease; the second has 2 s.
	OnChange func(ctx context.Context, worker int, d Doc, held bool)

	// Close, if set, is called when the Keeper is closed and needs the source no
	// more.
	Close func() error

	fixed *int // a worker id on a local file
}

func (s *Source) close() error {
	if s.Close == nil {
		return nil
	}
	return s.Close()
}

// Options are a source's own settings, by name. A DSN's parameter
// leafNacosNamespace reaches the source "nacos" as "Namespace": "leaf" and the
// source's name, in any case, are cut off.
type Options map[string]string

// Only is an error if there are options other than the known ones. A source
// calls it first, so that a misspelt option is never ignored.
func (o Options) Only(known ...string) error {
	for _, k := range slices.Sorted(maps.Keys(o)) {
		if !slices.Contains(known, k) {
			return &spec.OptionError{Option: k, Reason: "no such parameter", Known: known}
		}
	}
	return nil
}

// parser reads what a DSN says of a source of one kind.
type parser = func(address string, opts Options) (open func(context.Context) (Source, error), err error)

var sources sync.Map // name → parser

// Register makes a source known under a name, as database/sql's drivers are:
// from an init function of a package that applications import for its effect.
// parse gets the address between the parentheses of a spec, such as
// "h1:8848,h2:8848", and connects nowhere: its error is found by sql.Open, or by
// the first connection. Register panics if the name is taken.
func Register(name string, parse func(address string, opts Options) (open func(context.Context) (Source, error), err error)) {
	if name == "" || parse == nil {
		panic("leafsql: worker.Register without a name or a function")
	}
	if _, dup := sources.LoadOrStore(name, parse); dup {
		panic("leafsql: worker.Register called twice for " + name)
	}
}

// sourcePackages are the sources that programs import by themselves, with their clients.
var sourcePackages = map[string]string{"nacos": "nacos", "etcd": "idgen/worker/etcd", "redis": "idgen/worker/redis", "zookeeper": "idgen/worker/zookeeper"}

// sourceNames lists the sources' names, sorted.
func sourceNames() (names []string) {
	for name := range sources.Range {
		names = append(names, name.(string))
	}
	slices.Sort(names)
	return names
}

// Lookup returns the function that opens the source which text names, such as
// "static(7)" or "nacos(h1:8848,h2:8848)". An address or an option that the source
// does not take is an error. Nothing connects yet.
func Lookup(text string, opts Options) (open func(context.Context) (Source, error), err error) {
	name, address, err := spec.Parse(text)
	if err != nil {
		return nil, err
	}
	source, ok := sources.Load(name)
	if !ok {
		hint := " (forgotten import?)"
		if path, ok := sourcePackages[name]; ok {
			hint = fmt.Sprintf("; go get github.com/leafsql/leafsql/%s, and import it for its effect: import _ \"github.com/leafsql/leafsql/%[1]s\"", path)
		}
		return nil, fmt.Errorf("leafsql: worker source %q is unknown; registered are %s%s", name, strings.Join(sourceNames(), ", "), hint)
	}
	open, err = source.(parser)(address, opts)
	if option, ok := errors.AsType[*spec.OptionError](err); ok {
		option.Source = cmp.Or(option.Source, strings.ToUpper(name[:1])+name[1:])
	}
	return open, err
}
