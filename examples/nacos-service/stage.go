package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/leafsql/leafsql/idgen/snowflake"
	"github.com/leafsql/leafsql/testutil/mysqltest"
	"github.com/leafsql/leafsql/testutil/nacostest"
)

// A stage contains the servers and services of the demo.
type stage struct {
	scr          *screen
	dir          string // folder for the services' SDK
	nacos        *nacostest.Server
	console      console
	database     *mysqltest.Server
	db           *sql.DB
	services     map[string]*process
	deadServices map[string]string // names of the killed services, by address
	customers    *customers
}

// table has no unique key on the id, so it accepts duplicates, and checkOrders can count them.
const table = `CREATE TABLE orders (
	id BIGINT NOT NULL,
	service VARCHAR(10) NOT NULL,
	customer VARCHAR(10) NOT NULL,
	KEY (id))`

func (s *stage) build(ctx context.Context) (err error) {
	s.services, s.deadServices = make(map[string]*process), make(map[string]string)
	if s.dir, err = os.MkdirTemp("", "leafsql-demo-nacos-"); err != nil {
		return err
	}
	err = s.scr.showDuring("Starting Nacos (the first time also fetches it with Maven)", func() string { return "" }, func() (err error) {
		s.nacos, err = nacostest.Launch(ctx, nacostest.V3, nacostest.Options{})
		return err
	})
	if err != nil {
		return err
	}
	s.console = console{s.nacos.Addr()}
	if s.database, err = mysqltest.Start(mysqltest.Config{}); err != nil {
		return err
	}
	admin, err := sql.Open("mysql", s.database.DSN(""))
	if err != nil {
		return err
	}
	defer admin.Close()
	if _, err := admin.ExecContext(ctx, "CREATE DATABASE shop"); err != nil {
		return err
	}
	if s.db, err = sql.Open("mysql", s.database.DSN("shop")); err != nil {
		return err
	}
	if _, err := s.db.ExecContext(ctx, table); err != nil {
		return err
	}
	return s.scr.showDuring("Making the documents of its 1,024 worker ids", func() string { return "" }, func() error {
		return prepare(ctx, s.console.addr)
	})
}

func (s *stage) launch(ctx context.Context, name, host string, ahead time.Duration) (err error) {
	if s.customers != nil {
		s.customers.forget(name)
	}
	p, err := launch(ctx, settings{Name: name, Host: host, DSN: s.database.DSN("shop"), Nacos: s.console.addr, Dir: s.dir, Ahead: ahead})
	if err == nil {
		s.services[name] = p
	}
	return err
}

func (s *stage) endService(name string) error {
	p := s.services[name]
	delete(s.services, name)
	return p.end()
}

func (s *stage) names() []string { return slices.Sorted(maps.Keys(s.services)) }

// leaseOf waits until Nacos shows the lease of a service.
func (s *stage) leaseOf(ctx context.Context, name string) (lease, error) {
	for until := time.Now().Add(stepTimeout); ; {
		all, err := s.console.leases(ctx)
		if err != nil {
			return lease{}, err
		}
		if i := slices.IndexFunc(all, func(l lease) bool { return l.addr == s.services[name].addr }); i >= 0 {
			return all[i], nil
		}
		if time.Now().After(until) {
			return lease{}, fmt.Errorf("the worker id of %s does not show in Nacos within %v", name, stepTimeout)
		}
		if !sleep(ctx, 100*time.Millisecond) {
			return lease{}, ctx.Err()
		}
	}
}

// show prints the worker ids in Nacos, and an id of each service.
func (s *stage) show(ctx context.Context) error {
	serving := make(map[string]string)
	for _, name := range s.names() {
		if _, err := s.customers.awaitFirstOrder(ctx, name); err != nil {
			return err
		}
		if _, err := s.leaseOf(ctx, name); err != nil {
			return err
		}
		serving[s.services[name].addr] = name
	}
	all, err := s.console.leases(ctx)
	if err != nil {
		return err
	}
	s.scr.printf("   %s\n", s.scr.bold(fmt.Sprintf("%-7s %-17s %9s  %s", "service", "address", "worker id", "ids may have times up to")))
	for _, l := range all {
		name, alive := serving[l.addr]
		if !alive {
			name = s.deadServices[l.addr] + " dead"
		}
		s.scr.printLines(fmt.Sprintf("%-7s %-17s %9d  %s", name, l.addr, l.worker, formatUntil(l.doc.HighWater)))
	}
	for _, name := range s.names() {
		id := s.customers.lastID(name)
		parts, err := snowflake.Leaf.Decompose(id)
		if err != nil {
			return err
		}
		s.scr.printLines(s.scr.dim(fmt.Sprintf("%s gave %d = %s, worker %d, %d", name, id, parts.Time.Format("15:04:05.000"), parts.Worker, parts.Sequence)))
	}
	return nil
}

func clockTime(t time.Time) string { return t.Local().Format("15:04:05") }

func formatUntil(t time.Time) string {
	return fmt.Sprintf("%s, in %v", clockTime(t), time.Until(t).Round(time.Second))
}

// checkOrders checks the result in the database.
func (s *stage) checkOrders(ctx context.Context) error {
	rows, err := s.db.QueryContext(ctx, "SELECT id >> 12 & 1023 AS worker, MIN(service), COUNT(*), MIN(id), MAX(id) FROM orders GROUP BY worker ORDER BY MIN(service), MIN(id)")
	if err != nil {
		return err
	}
	defer rows.Close()
	s.scr.printf("   %s\n", s.scr.bold(fmt.Sprintf("%-9s  %-7s %7s  %s", "worker id", "service", "orders", "times in the ids")))
	for rows.Next() {
		var (
			worker, orders int
			service        string
			ids            [2]int64
			times          [2]string
		)
		if err := rows.Scan(&worker, &service, &orders, &ids[0], &ids[1]); err != nil {
			return err
		}
		for i, id := range ids {
			p, err := snowflake.Leaf.Decompose(id)
			if err != nil {
				return err
			}
			times[i] = p.Time.Format("15:04:05.000")
		}
		s.scr.printLines(fmt.Sprintf("%9d  %-7s %7d  %s - %s", worker, service, orders, times[0], times[1]))
	}
	if err := rows.Err(); err != nil {
		return err
	}
	var orders, ids int
	if err := s.db.QueryRowContext(ctx, "SELECT COUNT(*), COUNT(DISTINCT id) FROM orders").Scan(&orders, &ids); err != nil {
		return err
	}
	bought, failed, _ := s.customers.sales()
	s.scr.printLines(fmt.Sprintf("Customers have %d orders; %d calls failed and were repeated elsewhere.", bought, failed), "")
	switch {
	case orders != ids:
		return fmt.Errorf("%d duplicate ids among %d orders", orders-ids, orders)
	case orders < bought:
		return fmt.Errorf("%d orders are in the database, customers have %d", orders, bought)
	}
	s.scr.printSuccess(fmt.Sprintf("%d orders, %d different ids, %d duplicates, counted by the database", orders, ids, orders-ids))
	return nil
}

// A cleanupError names the files that were not removed.
type cleanupError struct{ error }

// cleanUp ends everything that was started, also after an incomplete start.
func (s *stage) cleanUp() error {
	if s.customers != nil {
		s.customers.close()
	}
	for _, p := range s.services {
		p.kill9()
	}
	var errs []error
	if s.db != nil {
		errs = append(errs, s.db.Close())
	}
	if s.database != nil {
		errs = append(errs, s.database.Stop())
	}
	if s.nacos != nil {
		errs = append(errs, s.nacos.Stop())
	}
	if s.dir != "" {
		errs = append(errs, os.RemoveAll(s.dir))
	}
	if err := errors.Join(errs...); err != nil {
		return cleanupError{err}
	}
	return nil
}
