package worker

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
)

func init() {
	registerFixed("static", parseStatic)
	registerFixed("env", parseEnv)
	registerFixed("ordinal", parseOrdinal)
}

// registerFixed registers a source of a fixed worker id. number returns the worker id for an
// address.
func registerFixed(name string, number func(address string) (int, error)) {
	Register(name, func(address string, opts Options) (func(context.Context) (Source, error), error) {
		err := opts.Only()
		if err != nil {
			return nil, err
		}
		n, err := number(address)
		if err != nil {
			return nil, fmt.Errorf("leafsql: worker source %s(%s): %w", name, address, err)
		}
		return func(context.Context) (Source, error) { return fixedSource(n), nil }, nil
	})
}

// fixedSource returns the source of one worker id. The operator must not give this worker id to
// another process. With Config.State its lease is kept in a file, which
// protects against a clock that was set back and against a second process on the host. Without
// Config.State only the clock protects the ids, so the time in ids never runs ahead of it.
func fixedSource(worker int) Source {
	return Source{Name: fmt.Sprintf("worker id %d, fixed", worker), fixedID: &worker}
}

func parseStatic(address string) (int, error) {
	n, err := strconv.Atoi(address)
	if err != nil || n < 0 {
		return 0, errors.New("not a worker id; write for example static(7)")
	}
	return n, nil
}

func parseEnv(variable string) (int, error) {
	text, ok := os.LookupEnv(variable)
	if !ok {
		return 0, errors.New("the environment variable is not set; set it to a worker id that no other process has")
	}
	n, err := strconv.Atoi(strings.TrimSpace(text))
	if err != nil || n < 0 {
		return 0, errors.New("its value is not a worker id; set it to a number from 0")
	}
	return n, nil
}

func parseOrdinal(address string) (int, error) {
	if address != "" {
		return 0, errors.New("it takes no address; write ordinal()")
	}
	host, err := os.Hostname()
	if err != nil {
		return 0, fmt.Errorf("host name: %w; use static(N) or env(VAR)", err)
	}
	return trailingNumber(host)
}

// trailingNumber returns the number at the end of a host name in a StatefulSet:
// 3 for shop-3.shop.default.svc.
func trailingNumber(host string) (int, error) {
	name, _, _ := strings.Cut(host, ".")
	n, err := strconv.Atoi(name[len(strings.TrimRight(name, "0123456789")):])
	if err != nil {
		return 0, fmt.Errorf("host name %q does not end in a number; use static(N) or env(VAR)", host)
	}
	return n, nil
}

// useLocal configures the engine for a fixed worker id in a file or in memory.
func (e *engine) useLocal(worker int, cfg *Config) error {
	if worker < 0 || worker >= cfg.Workers {
		return fmt.Errorf("leafsql: worker id %d does not fit the layout, which has worker ids 0 … %d; use a layout with more worker bits", worker, cfg.Workers-1)
	}
	if _, taken := leasedIDs.LoadOrStore(worker, true); taken {
		return fmt.Errorf("leafsql: worker id %d: %w: another pool of this process leases it; give both pools the same leafWorker, leafState and leafSnowflake, or different worker ids", worker, errInUse)
	}
	unclaim := func() error { leasedIDs.Delete(worker); return nil }
	e.timing, e.slots, e.source.Close = localTiming, []int{worker}, unclaim
	if cfg.State == "" {
		e.log.Warn("leafsql: only the clock protects this fixed worker id: a second process with it, or a clock that is set back between two runs, issues ids twice; set leafState=DIR, which prevents both on this host",
			"worker_id", worker)
		e.declaredNew, e.source.Slots, e.maxAhead = true, &processSlots, 0
		return nil
	}
	f, err := openFile(cfg.State, worker)
	if err != nil {
		unclaim()
		return err
	}
	e.source.Slots, e.source.Close = f, func() error { defer unclaim(); return f.Close() }
	return nil
}

// leasedIDs holds the fixed worker ids that this process leases. Without it, two pools with
// different directories could lease the same worker id.
var leasedIDs sync.Map

// memorySlots implements Slots in this process's memory, for a fixed worker id without
// local state, so that its ids continue above those of an earlier pool.
type memorySlots struct{ texts sync.Map } // a text is also its version

var processSlots memorySlots

func (m *memorySlots) Get(_ context.Context, slot int) (d Doc, v Version, err error) {
	if text, found := m.texts.Load(slot); found {
		v = text.(Version)
		err = d.Decode(string(v))
	}
	return d, v, err
}

func (m *memorySlots) Put(_ context.Context, slot int, d Doc, expected Version) (Version, bool, error) {
	text := Version(d.Encode())
	if expected == "" {
		_, found := m.texts.LoadOrStore(slot, text)
		return text, !found, nil
	}
	return text, m.texts.CompareAndSwap(slot, expected, text), nil
}
