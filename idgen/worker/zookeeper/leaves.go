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

// leaves is which numbers Java Leaf has. A watch tells when that is no longer so.
type leaves struct {
	changed <-chan zk.Event // nil without a watch
	nodes   map[int]string  // the nodes' names by number
	next    int             // what the next new one will be numbered; -1: there is no Java Leaf
}

const (
	// reserve is how many numbers from the next one on are left to Java Leaf. That many new ones would have to start within
	// the time that it takes a process to notice.
	reserve = 64

	// absence is how long one may not have reported its time until it has gone.
	absence = time.Hour

	// notice is how far ahead the high water is said to be of a worker id that Java Leaf has: above that of a lease, so that
	// who holds one gives it up, and not so far that it could not be waited for.
	notice = time.Minute
)

// reserved reports whether a number will soon be given to a new Java Leaf.
func (l *leaves) reserved(n int) bool { return l.next >= 0 && n >= l.next && n < l.next+reserve }

// settled is how old a connection is before a watch is set. The client sends the watches of before once it has a session, in the
// background, and must not find the first new one among them.
const settled = time.Second

// leaves looks at Java Leaf's nodes, unless a watch tells that nothing has changed since the last time.
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

// numbered reads the numbers at the ends of the names. The server numbers a new child by how many were created before it, and
// says how many were created or deleted.
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

// report is what a Java Leaf last said.
type report struct {
	node    string
	version int32     // of its node
	at      time.Time // by its clock or the server's, whichever is later
}

// report reads what the Java Leaf says that has a number.
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

// held is the document that a worker id has which is Java Leaf's.
func held(by string) worker.Doc {
	return worker.Doc{Nonce: "java-leaf", HighWater: time.UnixMilli(time.Now().Add(notice).UnixMilli()), Owner: by}
}
