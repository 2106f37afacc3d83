package zookeeper

import (
	"context"
	"encoding/json"
	"errors"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/leafsql/leafsql/idgen/worker"
)

// leaves holds the numbers that Java Leafs have. A watch fires when this is out of date.
type leaves struct {
	changed <-chan zk.Event // nil without a watch
	nodes   map[int]string  // the nodes' names by number
	next    int             // number of the next new Java Leaf; -1: there is no Java Leaf
}

const (
	// reserve is the count of numbers, from the next one on, that are left to Java Leaf. That many new ones would have to start
	// before a process notices.
	reserve = 64

	// absence is the time without a report after which a Java Leaf has gone.
	absence = time.Hour

	// notice is how far ahead the high water of a worker id of Java Leaf is reported. It is more than a lease, so that
	// a holder gives the worker id up, and short enough to wait for.
	notice = time.Minute
)

// reserved reports whether a number will soon be given to a new Java Leaf.
func (l *leaves) reserved(n int) bool { return l.next >= 0 && n >= l.next && n < l.next+reserve }

// settled is the age of a connection at which watches are set. When the client has a session, it sends its earlier watches again in
// the background, and the first new watch must not be among them.
const settled = time.Second

// leaves reads Java Leaf's nodes, unless no watch has fired since the last time.
func (r *registry) leaves(ctx context.Context, c *conn) (*leaves, error) {
	c.mu.Lock()
	l := c.leaves
	c.mu.Unlock()
	if l != nil {
		select {
		case <-l.changed:
		default:
			return l, nil
		}
	}
	look := r.look
	if time.Since(c.since) > settled {
		look = r.watch
	}
	l, err := call(ctx, c, func() (*leaves, error) { return look(c) })
	if err == nil && l.changed != nil {
		c.mu.Lock()
		c.leaves = l
		c.mu.Unlock()
	}
	return l, err
}

func (r *registry) look(c *conn) (*leaves, error) {
	children, stat, err := c.Children(r.cfg.forever())
	if errors.Is(err, zk.ErrNoNode) {
		return &leaves{next: -1}, nil
	}
	if err != nil {
		return nil, err
	}
	return numbered(children, stat, nil), nil
}

func (r *registry) watch(c *conn) (*leaves, error) {
	for {
		children, stat, changed, err := c.ChildrenW(r.cfg.forever())
		if err == nil {
			return numbered(children, stat, changed), nil
		}
		if !errors.Is(err, zk.ErrNoNode) {
			return nil, err
		}
		there, _, changed, err := c.ExistsW(r.cfg.forever())
		if err != nil {
			return nil, err
		}
		if !there {
			return &leaves{changed: changed, next: -1}, nil
		}
	}
}

// numbered parses the numbers at the ends of the names. The server numbers a new child by the count of children created before it, and
// returns the count of creations and deletions.
func numbered(children []string, stat *zk.Stat, changed <-chan zk.Event) *leaves {
	l := &leaves{changed: changed, nodes: make(map[int]string), next: (int(stat.Cversion) + int(stat.NumChildren)) / 2}
	for _, name := range children {
		if i := strings.LastIndexByte(name, '-'); i >= 0 {
			if n, err := strconv.Atoi(name[i+1:]); err == nil {
				l.nodes[n] = name
			}
		}
	}
	return l
}

// report is the last report of a Java Leaf.
type report struct {
	node    string
	version int32     // version of its node
	at      time.Time // time of the report by its clock or the server's, whichever is later
}

// report reads the last report in a Java Leaf's node.
func (r *registry) report(ctx context.Context, c *conn, node string) (report, error) {
	rep := report{node: node}
	stat, err := call(ctx, c, func() (*zk.Stat, error) {
		text, stat, err := c.Get(path.Join(r.cfg.forever(), node))
		var said struct{ Timestamp int64 }
		if err == nil && json.Unmarshal(text, &said) == nil {
			rep.at = time.UnixMilli(said.Timestamp)
		}
		return stat, err
	})
	if err != nil {
		return report{}, err
	}
	if at := time.UnixMilli(stat.Mtime); at.After(rep.at) {
		rep.at = at
	}
	rep.version = stat.Version
	return rep, nil
}

// held returns the document of a worker id that a Java Leaf has.
func held(by string) worker.Doc {
	return worker.Doc{Nonce: "java-leaf", HighWater: time.UnixMilli(time.Now().Add(notice).UnixMilli()), Owner: by}
}
