package zookeeper

import (
	"context"
	"errors"
	"path"
	"time"

	"github.com/go-zookeeper/zk"
)

// time is the clock of the server that leads, as it stamps the write of a node that has nothing else to say.
func (r *registry) time(ctx context.Context) (time.Time, error) {
	c, err := r.servers.connection(ctx)
	if err != nil {
		return time.Time{}, err
	}
	epoch, err := r.epoch(ctx, c, false)
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
