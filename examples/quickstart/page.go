package main

import (
	"cmp"
	"context"
	"database/sql"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/leafsql/leafsql/statuspage"
)

// A site serves the status page of a pool.
type site struct {
	url  string
	stop func()
}

func openSite(ctx context.Context, db *sql.DB, title, address string) (*site, error) {
	listener, err := net.Listen("tcp", cmp.Or(address, "127.0.0.1:0"))
	if err != nil {
		return nil, err
	}
	page := statuspage.New(db, title)
	server := &http.Server{Handler: page, ReadHeaderTimeout: 10 * time.Second}
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() { page.Run(ctx) })
	wg.Go(func() { server.Serve(listener) }) // until Close
	return &site{url: "http://" + listener.Addr().String(), stop: func() {
		cancel()
		server.Close()
		wg.Wait()
	}}, nil
}

// pause is the time between two days of the shop while the page is open.
const pause = 500 * time.Millisecond

// keepRunning runs the shop on both shards, so that the figures of the page change. It returns nil when ctx
// ends.
func (v variant) keepRunning(ctx context.Context) error {
	tick := time.NewTicker(pause)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		for i, db := range v.pools {
			if err := (shop{db}).runDay(ctx, v.customers[i]...); err != nil && ctx.Err() == nil {
				return v.wrapShardError(i, err)
			}
		}
	}
}
