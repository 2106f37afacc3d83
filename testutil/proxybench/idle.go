//go:build linux

package main

import (
	"context"
	"crypto/tls"
	"database/sql"
	"fmt"
	"net"
	"time"

	"github.com/go-sql-driver/mysql"
)

// idleConnections opens idle connections and measures their memory: in the proxy, the bytes in use in heap and stacks
// after a collection; in the proxy and in HAProxy, the memory of the whole process. The server uses a pool of threads
// for the connections.
func idleConnections(ctx context.Context, connections int) (all []idleMemory, err error) {
	const overTLS = 1000
	s, err := start(connections, "--thread-handling=pool-of-threads")
	if err != nil {
		return nil, err
	}
	defer s.stop()
	defer func() {
		if err != nil {
			err = fmt.Errorf("%w\nThe proxy's log: %s", err, s.between[0].Tail())
		}
	}()
	plain, err := s.idleOn(ctx, throughProxy, "proxy, plain", "", connections)
	if err != nil {
		return nil, err
	}
	all = append(all, plain...)
	if err := mysql.RegisterTLSConfig("proxybench", &tls.Config{RootCAs: s.tls.Client().RootCAs}); err != nil {
		return nil, err
	}
	encrypted, err := s.idleOn(ctx, throughProxy, "proxy, TLS", "&tls=proxybench", min(connections, overTLS))
	if err != nil {
		return nil, err
	}
	for _, i := range encrypted {
		i.limited = false
		all = append(all, i)
	}
	beside, err := s.idleOn(ctx, throughHAProxy, "HAProxy, plain", "", connections)
	return append(all, beside...), err
}

func (s *setup) idleOn(ctx context.Context, way int, what, parameters string, connections int) (all []idleMemory, err error) {
	db, err := sql.Open("mysql", s.dsn(way, parameters))
	if err != nil {
		return nil, err
	}
	defer db.Close()
	db.SetMaxIdleConns(connections)
	inUse, whole, err := s.memory(way)
	if err != nil {
		return nil, err
	}
	note := func(label string, began time.Time) error {
		nowInUse, nowWhole, err := s.memory(way)
		if err != nil {
			return err
		}
		took := time.Since(began)
		if way == throughProxy {
			all = append(all, idleMemory{what + ", " + label, connections, inUse, nowInUse, took, true})
		}
		all = append(all, idleMemory{what + ", " + label + ", whole process", connections, whole, nowWhole, took, false})
		fmt.Printf("%d connections, %s, %s: %.0f s\n", connections, what, label, took.Seconds())
		return nil
	}
	began := time.Now()
	conns := make([]*sql.Conn, connections)
	for i := range conns {
		if conns[i], err = db.Conn(ctx); err != nil {
			return nil, fmt.Errorf("connection %d: %w", i+1, err)
		}
	}
	if err := note("new", began); err != nil {
		return nil, err
	}
	began = time.Now()
	for _, c := range conns {
		if _, err := c.ExecContext(ctx, `INSERT INTO written (a) VALUES ('it\'s idle')`); err != nil {
			return nil, err
		}
	}
	if err := note("after a filled INSERT", began); err != nil {
		return nil, err
	}
	for _, c := range conns {
		c.Close()
	}
	return all, nil
}

// memory returns two sizes of a way's process, in bytes: the heap and stacks in use, which only the
// proxy reports, and the resident memory.
func (s *setup) memory(way int) (inUse, whole int64, err error) {
	if way == throughProxy {
		conn, err := net.Dial("tcp", s.control)
		if err != nil {
			return 0, 0, err
		}
		defer conn.Close()
		if _, err := fmt.Fscan(conn, &inUse); err != nil {
			return 0, 0, err
		}
	}
	whole, err = residentMemory(s.pids[way])
	return inUse, whole, err
}
