package main

import (
	"context"
	"fmt"
	"math"
	"time"
)

// A result contains the figures of one driver in the comparison.
type result struct {
	variant
	bar    *bar
	before int       // orders from before the comparison
	rates  []float64 // rows/s of each round
}

// insert inserts orders with the crew and records the time.
func (r *result) insert(c *crew, orders int, progress func()) error {
	if orders == 0 {
		return nil
	}
	start, took := time.Now(), r.bar.took
	exact, err := c.insert(r.driverName, r.shards, orders, func(inserted int) {
		r.bar.done += inserted
		r.bar.took = took + time.Since(start)
		progress()
	})
	r.bar.took = took + exact
	r.rates = append(r.rates, float64(orders)/exact.Seconds())
	return err
}

// spread returns the largest difference between a round's rate and the rate over all rounds, as a
// fraction of the latter.
func (r *result) spread() (distance float64) {
	for _, rate := range r.rates {
		distance = max(distance, math.Abs(rate-r.bar.rate())/r.bar.rate())
	}
	return distance
}

// count returns the SQL aggregate what over the orders of both shards together.
func (s *server) count(ctx context.Context, shards [2]string, what string) (n int, err error) {
	err = s.db.QueryRowContext(ctx, fmt.Sprintf("SELECT %s FROM (SELECT id FROM %s.orders UNION ALL SELECT id FROM %s.orders) both_shards",
		what, shards[0], shards[1])).Scan(&n)
	return n, err
}
