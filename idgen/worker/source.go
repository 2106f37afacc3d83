package worker

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
)

// Source is an opened place where worker ids come from. If Slots is an
// Anchorer its anchor is watched; if it is an io.Closer it is closed when the
// lease, and every successor of it, is over.
type Source struct {
	Slots Slots

	// Workers, if set, names the only worker ids this source may use, asked
	// before every search. Nil: every one that the layout has room for.
	Workers func(ctx context.Context) ([]int, error)

	// Last, if set, is a hint which worker id this instance had before. It is
	// tried first and proves nothing.
	Last func(ctx context.Context) (worker int, ok bool)

	// Held, if set, is called in the background after a worker id was taken
	// (Held true) and after it was given back or lost (Held false), one call
	// at a time, in that order. It is for what people want to see, such as an
	// entry in a console: the lease does not wait for it when taken. The first
	// call may go on trying until its ctx ends, which it does with the lease;
	// the second has 2 s.
	Held func(ctx context.Context, h Holding)

	fixed *int // a worker id on the local-file backend
}

// Holding is what a Source's Held is told.
type Holding struct {
	Worker int
	Doc    Doc  // as of the take or the release
	Held   bool // false: given back or lost
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
			return fmt.Errorf("leafsql: worker source: unknown option %q; known are %s", k, cmp.Or(strings.Join(known, ", "), "none"))
		}
	}
	return nil
}

// Opener opens a source. The address is what stands between the parentheses
// of its spec, such as "h1:8848,h2:8848".
type Opener func(ctx context.Context, address string, opts Options) (Source, error)

var sources = struct {
	sync.Mutex
	open map[string]Opener
}{open: make(map[string]Opener)}

// Register makes a source known under a name, as database/sql's drivers are:
// from an init function of a package that applications import for its effect.
// It panics if the name is taken.
func Register(name string, open Opener) {
	sources.Lock()
	defer sources.Unlock()
	if name == "" || open == nil {
		panic("leafsql: worker.Register without a name or a function")
	}
	if _, dup := sources.open[name]; dup {
		panic("leafsql: worker.Register called twice for " + name)
	}
	sources.open[name] = open
}

// Registered lists the sources' names, sorted.
func Registered() []string {
	sources.Lock()
	defer sources.Unlock()
	return slices.Sorted(maps.Keys(sources.open))
}

// ParseSpec cuts "name(address)" into its parts.
func ParseSpec(spec string) (name, address string, err error) {
	name, rest, ok := strings.Cut(spec, "(")
	if !ok || name == "" || !strings.HasSuffix(rest, ")") {
		if i := strings.LastIndexByte(spec, '@'); i >= 0 {
			spec = "…" + spec[i:] // a password may stand before it
		}
		return "", "", fmt.Errorf("leafsql: worker source %q: not of the form name(address); write for example static(7)", spec)
	}
	return name, strings.TrimSuffix(rest, ")"), nil
}

// OpenSource opens the source that spec names.
func OpenSource(ctx context.Context, spec string, opts Options) (Source, error) {
	name, address, err := ParseSpec(spec)
	if err != nil {
		return Source{}, err
	}
	sources.Lock()
	open := sources.open[name]
	sources.Unlock()
	if open == nil {
		return Source{}, fmt.Errorf("leafsql: worker source %q is unknown; registered are %s (forgotten import?)",
			name, strings.Join(Registered(), ", "))
	}
	return open(ctx, address, opts)
}

// among gives the worker ids to choose from, which must fit the layout.
func among(some func(context.Context) ([]int, error), n int) func(context.Context) ([]int, error) {
	if some == nil {
		all := make([]int, n)
		for i := range all {
			all[i] = i
		}
		return func(context.Context) ([]int, error) { return all, nil }
	}
	return func(ctx context.Context) ([]int, error) {
		ids, err := some(ctx)
		for _, id := range ids {
			if id < 0 || id >= n {
				return nil, fmt.Errorf("worker id %d does not fit the layout, which has 0 … %d; use one with more worker bits", id, n-1)
			}
		}
		return ids, err
	}
}
