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

// javaLeaves holds the numbers (worker ids) that Java Leafs have. A watch reports when this data is out of date.
type javaLeaves struct {
	changed    <-chan zk.Event // nil without a watch
	nodes      map[int]string  // the nodes' names by number
	nextNumber int             // number of the next new Java Leaf; -1: there is no Java Leaf
}

const (
	// reservedCount is how many of the next numbers are reserved for Java Leaf. A number gets
	// two owners only if more than reservedCount new Java Leafs start before a process notices.
	reservedCount = 64

	// absenceLimit is the time without a report after which a Java Leaf counts as gone.
	absenceLimit = time.Hour

	// heldAhead is how far ahead of now the high water is, in the document that is returned for a worker id of a Java
	// Leaf. (The high water is the latest time that the owner may put into an id.) It has to be later than the high water
	// of a process that holds the worker id, so that this process gives it up, and soon enough to wait for.
	heldAhead = time.Minute
)

// isReserved reports whether a number will soon be given to a new Java Leaf.
func (l *javaLeaves) isReserved(n int) bool {
	return l.nextNumber >= 0 && n >= l.nextNumber && n < l.nextNumber+reservedCount
}

// watchDelay is the minimum age of a connection on which watches are set. After the client gets a session, it sends its
// earlier watches again in the background, and a new watch must not be among them.
const watchDelay = time.Second

// readLeaves returns Java Leaf's numbers. It reads the nodes, unless a watch shows that they have not changed.
func (r *registry) readLeaves(ctx context.Context, c *conn) (*javaLeaves, error) {
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
	look := r.listLeaves
	if time.Since(c.since) > watchDelay {
		look = r.watchLeaves
	}
	l, err := call(ctx, c, func() (*javaLeaves, error) { return look(c) })
	if err == nil && l.changed != nil {
		c.mu.Lock()
		c.leaves = l
		c.mu.Unlock()
	}
	return l, err
}

func (r *registry) listLeaves(c *conn) (*javaLeaves, error) {
	children, stat, err := c.Children(r.cfg.forever())
	if errors.Is(err, zk.ErrNoNode) {
		return &javaLeaves{nextNumber: -1}, nil
	}
	if err != nil {
		return nil, err
	}
	return parseLeaves(children, stat, nil), nil
}

func (r *registry) watchLeaves(c *conn) (*javaLeaves, error) {
	for {
		children, stat, changed, err := c.ChildrenW(r.cfg.forever())
		if err == nil {
			return parseLeaves(children, stat, changed), nil
		}
		if !errors.Is(err, zk.ErrNoNode) {
			return nil, err
		}
		there, _, changed, err := c.ExistsW(r.cfg.forever())
		if err != nil {
			return nil, err
		}
		if !there {
			return &javaLeaves{changed: changed, nextNumber: -1}, nil
		}
	}
}

// parseLeaves parses the numbers at the ends of the names. The server gives a new child the number of children that
// were created before it. Cversion counts the creations and deletions.
func parseLeaves(children []string, stat *zk.Stat, changed <-chan zk.Event) *javaLeaves {
	l := &javaLeaves{changed: changed, nodes: make(map[int]string), nextNumber: (int(stat.Cversion) + int(stat.NumChildren)) / 2}
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
	at      time.Time // time of the report on the Java Leaf's clock or on the server's clock, whichever is later
}

// readReport reads the last report in a Java Leaf's node.
func (r *registry) readReport(ctx context.Context, c *conn, node string) (report, error) {
	rep := report{node: node}
	stat, err := call(ctx, c, func() (*zk.Stat, error) {
		text, stat, err := c.Get(path.Join(r.cfg.forever(), node))
		var content struct{ Timestamp int64 }
		if err == nil && json.Unmarshal(text, &content) == nil {
			rep.at = time.UnixMilli(content.Timestamp)
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

// heldDoc returns the document of a worker id that a Java Leaf has.
func heldDoc(by string) worker.Doc {
	return worker.Doc{Nonce: "java-leaf", HighWater: time.UnixMilli(time.Now().Add(heldAhead).UnixMilli()), Owner: by}
}
