// Package javaleaf replaces Meituan's Leaf, the Java program, in tests of programs that share worker ids with it. Leaf itself is in
// no package repository. The package changes ZooKeeper's nodes in the same way and order as Leaf's source code at its last
// commit, 86a6441.
//
//	leaf, err := javaleaf.Start(ctx, javaleaf.Config{Name: "shop", Addr: "10.0.0.7:8080", ZooKeeper: []string{s.Addr}})
//	leaf.Worker // the worker id that Leaf would put into its ids
//	leaf.Stop() // its node remains, as with a Leaf that has ended
//
// Unlike Leaf, it does not store the worker id in a local file, so it cannot start without ZooKeeper. It issues no ids.
package javaleaf

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"path"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"
)

// Config has the settings of a Leaf that issues snowflakes.
type Config struct {
	Name      string           // leaf.name, without "-", which Leaf does not support
	Addr      string           // its ip:port, by which it finds its node again
	ZooKeeper []string         // leaf.snowflake.zk.address
	Every     time.Duration    // interval of reports; 0: Leaf's 3 s
	Now       func() time.Time // its clock; nil: time.Now
}

// A Leaf has a worker id, and reports its time to its node until it is stopped.
type Leaf struct {
	Worker int    // the number at the end of its node's name
	Path   string // path of its node, /snowflake/<name>/forever/<ip>:<port>-<number>

	cfg    Config
	conn   *zk.Conn
	stop   chan struct{}
	ended  sync.WaitGroup
	latest time.Time // the last time that it reported
}

// report is the content of a node.
type report struct {
	IP        string `json:"ip"`
	Port      string `json:"port"`
	Timestamp int64  `json:"timestamp"` // Unix ms
}

const workers = 1024

// Start starts a Leaf. It uses the existing node of its address, or creates one. Like Leaf, it does not start if this node has a
// time in the future, if it can't parse the name of another node, or if its worker id is too high.
func Start(ctx context.Context, cfg Config) (*Leaf, error) {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Every == 0 {
		cfg.Every = 3 * time.Second
	}
	conn, _, err := zk.Connect(cfg.ZooKeeper, 6*time.Second, zk.WithLogger(log.New(io.Discard, "", 0)))
	if err != nil {
		return nil, fmt.Errorf("javaleaf: %w", err)
	}
	l := &Leaf{cfg: cfg, conn: conn, stop: make(chan struct{})}
	if err := l.join(ctx); err != nil {
		conn.Close()
		return nil, fmt.Errorf("javaleaf: %s: %w", cfg.Addr, err)
	}
	l.ended.Go(l.reporting)
	return l, nil
}

// Stop ends the Leaf. Its node remains.
func (l *Leaf) Stop() {
	close(l.stop)
	l.conn.Close()
	l.ended.Wait()
}

func (l *Leaf) join(ctx context.Context) error {
	root := path.Join("/snowflake", l.cfg.Name, "forever")
	there, err := l.exists(ctx, root)
	if err != nil {
		return err
	}
	if !there { // the first Leaf uses worker id 0, whatever the number of its node is
		return l.create(root)
	}
	children, _, err := l.conn.Children(root)
	if err != nil {
		return err
	}
	for _, child := range children {
		number, err := number(child)
		if err != nil {
			return err
		}
		if strings.HasPrefix(child, l.cfg.Addr+"-") {
			l.Path, l.Worker = path.Join(root, child), number
		}
	}
	if l.Path != "" {
		err = l.check()
	} else if err = l.create(root); err == nil {
		l.Worker, err = number(l.Path)
	}
	if err == nil && l.Worker >= workers {
		err = fmt.Errorf("worker id %d is too high", l.Worker)
	}
	return err
}

// exists reports whether a node exists. It waits for the connection.
func (l *Leaf) exists(ctx context.Context, node string) (bool, error) {
	for {
		there, _, err := l.conn.Exists(node)
		if err == nil {
			return there, nil
		}
		select {
		case <-ctx.Done():
			return false, fmt.Errorf("%w: %w", context.Cause(ctx), err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// create creates the Leaf's node, and the folders above it.
func (l *Leaf) create(root string) (err error) {
	world := zk.WorldACL(zk.PermAll)
	for i := range root {
		if i > 0 && root[i] == '/' || i == len(root)-1 {
			_, err := l.conn.Create(strings.TrimSuffix(root[:i+1], "/"), nil, 0, world)
			if err != nil && !errors.Is(err, zk.ErrNodeExists) {
				return err
			}
		}
	}
	data, err := l.report()
	if err != nil {
		return err
	}
	l.Path, err = l.conn.Create(root+"/"+l.cfg.Addr+"-", data, zk.FlagSequence, world)
	return err
}

// number parses the number after the first "-".
func number(node string) (int, error) {
	parts := strings.Split(node, "-")
	if len(parts) < 2 {
		return 0, fmt.Errorf("Leaf can't read the name %q", node)
	}
	n, err := strconv.Atoi(parts[1])
	if err != nil {
		return 0, fmt.Errorf("Leaf can't read the name %q: %w", node, err)
	}
	return n, nil
}

// check returns an error if the clock is before the time that was last reported.
func (l *Leaf) check() error {
	data, _, err := l.conn.Get(l.Path)
	if err != nil {
		return err
	}
	var r report
	if err := json.Unmarshal(data, &r); err != nil {
		return err
	}
	if now := l.cfg.Now().UnixMilli(); r.Timestamp > now {
		return fmt.Errorf("%s reports a time that is %d ms ahead", l.Path, r.Timestamp-now)
	}
	return nil
}

func (l *Leaf) report() ([]byte, error) {
	ip, port, err := net.SplitHostPort(l.cfg.Addr)
	if err != nil {
		return nil, err
	}
	return json.Marshal(report{IP: ip, Port: port, Timestamp: l.cfg.Now().UnixMilli()})
}

// reporting writes the Leaf's time periodically. After the clock was set back, it reports nothing until the clock has caught up. It
// does not retry a failed report.
func (l *Leaf) reporting() {
	for wait := l.cfg.Every / 3; ; wait = l.cfg.Every {
		select {
		case <-l.stop:
			return
		case <-time.After(wait):
		}
		if now := l.cfg.Now(); now.Before(l.latest) {
			continue
		}
		if data, err := l.report(); err == nil {
			if _, err := l.conn.Set(l.Path, data, -1); err == nil {
				l.latest = l.cfg.Now()
			}
		}
	}
}
