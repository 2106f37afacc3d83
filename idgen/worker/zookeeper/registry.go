package zookeeper

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/leafsql/leafsql/idgen/worker"
)

// registry implements worker.Slots. Each slot, the place of a worker id's document, is a node of ZooKeeper.
type registry struct {
	cfg          Config
	servers      *servers
	absenceLimit time.Duration // 0: the constant absenceLimit
}

// version is the content of a slot's Version. It contains the epoch, the random name of a registry, because versions of nodes are
// small numbers, which repeat in a registry that was wiped.
type version struct {
	epoch       string // "" for a missing node
	nodeVersion int32
	leaf        string // the node of a Java Leaf that has gone; "": there is none
	leafVersion int32  // version of leaf
}

func (v version) text() worker.Version {
	s := ""
	if v.epoch != "" {
		s = v.epoch + "/" + strconv.Itoa(int(v.nodeVersion))
	}
	if v.leaf != "" {
		s += "|" + strconv.Itoa(int(v.leafVersion)) + "|" + v.leaf
	}
	return worker.Version(s)
}

func parseVersion(s worker.Version) (v version, ok bool) {
	own, leaf, _ := strings.Cut(string(s), "|")
	var err, errLeaf error
	if own != "" {
		v.epoch, own, _ = strings.Cut(own, "/")
		v.nodeVersion, err = parseInt32(own)
	}
	if leaf != "" {
		var n string
		n, v.leaf, _ = strings.Cut(leaf, "|")
		v.leafVersion, errLeaf = parseInt32(n)
	}
	return v, err == nil && errLeaf == nil
}

func parseInt32(s string) (int32, error) {
	n, err := strconv.ParseInt(s, 10, 32)
	return int32(n), err
}

// takenVersion is the version of a worker id that a Java Leaf has. No put at this version succeeds.
const takenVersion worker.Version = "java-leaf"

// nodePath returns the path of a slot's document.
func (r *registry) nodePath(epoch string, slot int) string {
	if slot == worker.RegistrySlot {
		return path.Join(r.cfg.folder(), epoch, "registry")
	}
	return path.Join(r.cfg.folder(), epoch, "worker-"+strconv.Itoa(slot))
}

// explain adds the registry's name to a client's error, and a hint if the nodes belong to another user.
func (r *registry) explain(err error) error {
	if errors.Is(err, zk.ErrNoAuth) {
		return &worker.UnusableError{Err: fmt.Errorf("leafsql: %s: leafZooKeeperUsername and leafZooKeeperPassword are not the user that created the nodes: %w", r.cfg, err)}
	}
	return fmt.Errorf("%s: %w", r.cfg, err)
}

// readEpoch returns the registry's epoch, "" if there is none. If again is set, it does not use the cached epoch.
func (r *registry) readEpoch(ctx context.Context, c *conn, again bool) (string, error) {
	c.mu.Lock()
	epoch := c.epoch
	c.mu.Unlock()
	if epoch != "" && !again {
		return epoch, nil
	}
	text, err := call(ctx, c, func() ([]byte, error) {
		text, _, err := c.Get(r.cfg.folder())
		return text, err
	})
	if err != nil && !errors.Is(err, zk.ErrNoNode) {
		return "", err
	}
	epoch = string(text)
	if strings.ContainsAny(epoch, "/|") {
		return "", fmt.Errorf("%s is not a folder of worker ids", r.cfg.folder())
	}
	c.mu.Lock()
	c.epoch = epoch
	c.mu.Unlock()
	return epoch, nil
}

// createFolders creates the registry's folders, unless another process has created them, and returns the epoch.
func (r *registry) createFolders(ctx context.Context, c *conn) (string, error) {
	parent := ""
	for name := range strings.SplitSeq(strings.Trim(path.Dir(r.cfg.folder()), "/"), "/") {
		parent += "/" + name // Java Leaf uses these nodes too
		_, err := call(ctx, c, func() (string, error) { return c.Create(parent, nil, 0, zk.WorldACL(zk.PermAll)) })
		if err != nil && !errors.Is(err, zk.ErrNodeExists) && !errors.Is(err, zk.ErrNoAuth) {
			return "", err
		}
	}
	epoch := rand.Text()
	_, err := multi(ctx, c,
		&zk.CreateRequest{Path: r.cfg.folder(), Data: []byte(epoch), Acl: r.acl()},
		&zk.CreateRequest{Path: path.Join(r.cfg.folder(), epoch), Acl: r.acl()})
	if err != nil && !errors.Is(err, zk.ErrNodeExists) {
		return "", err
	}
	return r.readEpoch(ctx, c, true)
}

// acl returns the access rights of new nodes.
func (r *registry) acl() []zk.ACL {
	if r.cfg.Username == "" {
		return zk.WorldACL(zk.PermAll)
	}
	return zk.DigestACL(zk.PermAll, r.cfg.Username, r.cfg.Password)
}

// Get implements worker.Slots.
func (r *registry) Get(ctx context.Context, slot int) (worker.Doc, worker.Version, error) {
	c, err := r.servers.connection(ctx)
	if err != nil {
		return worker.Doc{}, "", err
	}
	d, v, err := r.readOwn(ctx, c, slot)
	if err == nil && slot != worker.RegistrySlot {
		return r.mergeLeaf(ctx, c, slot, d, v)
	}
	if err != nil {
		return worker.Doc{}, "", r.explain(err)
	}
	return d, v.text(), nil
}

// readOwn returns the document in leafsql's node of a slot.
func (r *registry) readOwn(ctx context.Context, c *conn, slot int) (worker.Doc, version, error) {
	for again := false; ; again = true {
		epoch, err := r.readEpoch(ctx, c, again)
		if err != nil || epoch == "" {
			return worker.Doc{}, version{}, err
		}
		type content struct {
			text []byte
			stat *zk.Stat
		}
		got, err := call(ctx, c, func() (content, error) {
			text, stat, err := c.Get(r.nodePath(epoch, slot))
			return content{text, stat}, err
		})
		switch {
		case errors.Is(err, zk.ErrNoNode) && !again: // the slot is missing, or the epoch has changed
			continue
		case errors.Is(err, zk.ErrNoNode):
			return worker.Doc{}, version{}, nil
		case err != nil:
			return worker.Doc{}, version{}, err
		}
		var d worker.Doc
		if err := d.Decode(string(got.text)); err != nil {
			return worker.Doc{}, version{}, fmt.Errorf("node %s: %w", r.nodePath(epoch, slot), err)
		}
		return d, version{epoch: epoch, nodeVersion: got.stat.Version}, nil
	}
}

// mergeLeaf returns a slot's document and version. They depend on leafsql's node, with d and v, and on a Java Leaf's node.
func (r *registry) mergeLeaf(ctx context.Context, c *conn, slot int, d worker.Doc, v version) (worker.Doc, worker.Version, error) {
	l, err := r.readLeaves(ctx, c)
	if err != nil {
		return worker.Doc{}, "", r.explain(err)
	}
	if l.isReserved(slot) {
		return heldDoc("the next Java Leaf that starts"), takenVersion, nil
	}
	node, ok := l.nodes[slot]
	if !ok {
		return d, v.text(), nil
	}
	rep, err := r.readReport(ctx, c, node)
	switch {
	case errors.Is(err, zk.ErrNoNode): // the node was just deleted
		return heldDoc("Java Leaf " + node), takenVersion, nil
	case err != nil:
		return worker.Doc{}, "", r.explain(err)
	case time.Since(rep.at) < cmp.Or(r.absenceLimit, absenceLimit):
		return heldDoc("Java Leaf " + node), takenVersion, nil
	}
	// The Java Leaf has gone. The last time in its ids is unknown.
	if v.epoch == "" {
		d = worker.Doc{Nonce: "java-leaf", Owner: "Java Leaf " + node}
	}
	if d.HighWater.Before(rep.at) {
		d.HighWater = rep.at
	}
	d.Registry, v.leaf, v.leafVersion = "", node, rep.version
	if d.IsInitial() || d.Free {
		d.Nonce, d.Free = "java-leaf", false // the slot can be taken if necessary, but is not prepared for others
	}
	return d, v.text(), nil
}

// Put implements worker.Slots.
func (r *registry) Put(ctx context.Context, slot int, d worker.Doc, expected worker.Version) (worker.Version, bool, error) {
	v, ok := parseVersion(expected)
	if !ok {
		return "", false, nil
	}
	c, err := r.servers.connection(ctx)
	if err != nil {
		return "", false, &worker.NotWrittenError{Err: err}
	}
	if slot != worker.RegistrySlot {
		l, err := r.readLeaves(ctx, c)
		switch {
		case err != nil:
			return "", false, &worker.NotWrittenError{Err: r.explain(err)}
		case l.isReserved(slot) || l.nodes[slot] != v.leaf:
			return "", false, nil
		}
	}
	epoch, err := r.readEpoch(ctx, c, false)
	if err == nil && epoch == "" && v.epoch == "" {
		epoch, err = r.createFolders(ctx, c)
	}
	switch {
	case err != nil:
		return "", false, &worker.NotWrittenError{Err: r.explain(err)}
	case v.epoch != "" && v.epoch != epoch:
		return "", false, nil
	}
	after := version{epoch: epoch}
	after.nodeVersion, err = r.write(ctx, c, r.nodePath(epoch, slot), []byte(d.Encode()), v)
	switch {
	case err == nil:
		return after.text(), true, nil
	case errors.Is(err, zk.ErrBadVersion), errors.Is(err, zk.ErrNodeExists), errors.Is(err, zk.ErrNoNode):
		return "", false, nil
	case errors.Is(err, zk.ErrNoAuth):
		return "", false, &worker.NotWrittenError{Err: r.explain(err)}
	}
	return "", false, r.explain(err)
}

// write makes the compare-and-set. It also deletes the node of a Java Leaf that has gone, and fails if this Java Leaf has reported
// again.
func (r *registry) write(ctx context.Context, c *conn, node string, text []byte, v version) (now int32, err error) {
	if v.leaf == "" && v.epoch == "" {
		return call(ctx, c, func() (int32, error) {
			_, err := c.Create(node, text, 0, r.acl())
			return 0, err
		})
	}
	if v.leaf == "" {
		return call(ctx, c, func() (int32, error) {
			stat, err := c.Set(node, text, v.nodeVersion)
			if err != nil {
				return 0, err
			}
			return stat.Version, nil
		})
	}
	gone := &zk.DeleteRequest{Path: path.Join(r.cfg.forever(), v.leaf), Version: v.leafVersion}
	if v.epoch == "" {
		_, err := multi(ctx, c, gone, &zk.CreateRequest{Path: node, Data: text, Acl: r.acl()})
		return 0, err
	}
	_, err = multi(ctx, c, gone, &zk.SetDataRequest{Path: node, Data: text, Version: v.nodeVersion})
	return v.nodeVersion + 1, err
}

// time returns the leading server's time, from the timestamp of a write to a node that has no other purpose.
func (r *registry) time(ctx context.Context) (time.Time, error) {
	c, err := r.servers.connection(ctx)
	if err != nil {
		return time.Time{}, err
	}
	epoch, err := r.readEpoch(ctx, c, false)
	if err == nil && epoch == "" {
		err = errors.New("leafsql: the registry does not exist yet")
	}
	if err != nil {
		return time.Time{}, err
	}
	node := path.Join(r.cfg.folder(), epoch, "clock")
	stat, err := call(ctx, c, func() (*zk.Stat, error) {
		stat, err := c.Set(node, nil, -1)
		if errors.Is(err, zk.ErrNoNode) {
			if _, err = c.Create(node, nil, 0, r.acl()); err == nil || errors.Is(err, zk.ErrNodeExists) {
				stat, err = c.Set(node, nil, -1)
			}
		}
		return stat, err
	})
	if err != nil {
		return time.Time{}, err
	}
	return time.UnixMilli(stat.Mtime), nil
}
