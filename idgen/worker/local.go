package worker

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
)

func init() {
	Register("static", openStatic)
	Register("env", openEnv)
	Register("ordinal", openOrdinal)
}

// Fixed is the source of one worker id that somebody else takes care to give
// to no other process. With Config.State its lease is kept in a file, which
// guards against a clock set back and a second process on the host; without,
// there is only the clock, and no id is of a time to come.
func Fixed(worker int) Source { return Source{fixed: &worker} }

func openStatic(_ context.Context, address string, opts Options) (Source, error) {
	if err := opts.Only(); err != nil {
		return Source{}, err
	}
	n, err := strconv.Atoi(address)
	if err != nil || n < 0 {
		return Source{}, fmt.Errorf("leafsql: worker source static(%s): not a worker id; write for example static(7)", address)
	}
	return Fixed(n), nil
}

func openEnv(_ context.Context, address string, opts Options) (Source, error) {
	if err := opts.Only(); err != nil {
		return Source{}, err
	}
	text, ok := os.LookupEnv(address)
	if !ok {
		return Source{}, fmt.Errorf("leafsql: worker source env(%s): the environment variable is not set; set it to a worker id of this process's own", address)
	}
	n, err := strconv.Atoi(strings.TrimSpace(text))
	if err != nil || n < 0 {
		return Source{}, fmt.Errorf("leafsql: worker source env(%s): its value is not a worker id; set it to a number from 0", address)
	}
	return Fixed(n), nil
}

func openOrdinal(_ context.Context, address string, opts Options) (Source, error) {
	if err := opts.Only(); err != nil {
		return Source{}, err
	}
	if address != "" {
		return Source{}, fmt.Errorf("leafsql: worker source ordinal(%s): takes nothing between the parentheses; write ordinal()", address)
	}
	host, err := os.Hostname()
	if err != nil {
		return Source{}, fmt.Errorf("leafsql: worker source ordinal(): host name: %w; use static(N) or env(VAR)", err)
	}
	n, err := ordinal(host)
	if err != nil {
		return Source{}, err
	}
	return Fixed(n), nil
}

// ordinal is the number at the end of a host's name, as a StatefulSet gives
// it: shop-3.shop.default.svc is 3.
func ordinal(host string) (int, error) {
	name, _, _ := strings.Cut(host, ".")
	digits := name[len(strings.TrimRight(name, "0123456789")):]
	n, err := strconv.Atoi(digits)
	if err != nil {
		return 0, fmt.Errorf("leafsql: worker source ordinal(): host name %q does not end in a number; use static(N) or env(VAR)", host)
	}
	return n, nil
}

// local makes the chain one of a fixed worker id, on a file or on nothing.
func (c *chain) local(worker int, cfg Config) error {
	if worker < 0 || worker >= cfg.Workers {
		return fmt.Errorf("leafsql: worker id %d does not fit the layout, which has 0 … %d; use one with more worker bits", worker, cfg.Workers-1)
	}
	if !claim(worker) {
		return fmt.Errorf("leafsql: worker id %d: %w: another pool of this process leases it; give both the same source, state and layout, or another worker id", worker, ErrInUse)
	}
	c.close = func() error { unclaim(worker); return nil }
	e := c.engine
	e.timing, e.spares = localTiming, 0
	e.workers = func(context.Context) ([]int, error) { return []int{worker}, nil }
	if cfg.State == "" {
		e.log.Warn("leafsql: the worker id is guarded by nothing but the clock: another process with the same one, or a clock set back between two runs, issues ids twice; leafState=DIR guards against both on this host",
			"worker", worker)
		e.fresh, e.slots, e.ahead, c.strict = true, &inProcess, 0, true
		return nil
	}
	f, err := openFile(cfg.State, worker)
	if err != nil {
		unclaim(worker)
		return err
	}
	e.slots, c.close = f, func() error { defer unclaim(worker); return f.Close() }
	return nil
}

// claimed are the fixed worker ids that this process leases: in two
// directories they would not meet.
var claimed sync.Map

func claim(worker int) bool {
	_, taken := claimed.LoadOrStore(worker, true)
	return !taken
}

func unclaim(worker int) { claimed.Delete(worker) }
