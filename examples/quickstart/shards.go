package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/go-sql-driver/mysql"

	"github.com/leafsql/leafsql/driver"
)

// A variant is the shop on two shards, run with one of the drivers.
type variant struct {
	driverName string
	key        string      // declaration of the key in the schema
	shards     [2]string   // data source names
	pools      [2]*sql.DB  // pools of this process
	names      [2]string   // names of the shards' databases
	merged     string      // database into which both are merged
	customers  [2][]string // customers of each shard's day
}

// variants returns the shop with each driver. The caller closes their pools.
func variants(srv *server) (plain, leaf variant, err error) {
	customers := [2][]string{{"ann", "bob", "cho"}, {"dee", "eva", "fay"}}
	plain = variant{driverName: "mysql", key: "AUTO_INCREMENT", merged: srv.name("mysql_merged"), customers: customers}
	leaf = variant{driverName: driver.Name, merged: srv.name("leaf_merged"), customers: customers}
	for i, letter := range []string{"a", "b"} {
		plain.names[i] = srv.name("mysql_" + letter)
		plain.shards[i] = srv.dsn(plain.names[i])
		leaf.names[i] = srv.name("leaf_" + letter)
		leaf.shards[i] = srv.leafDSN(leaf.names[i])
	}
	err = errors.Join(plain.open(), leaf.open())
	return plain, leaf, err
}

func (v *variant) open() (err error) {
	for i, dsn := range v.shards {
		if v.pools[i], err = sql.Open(v.driverName, dsn); err != nil {
			return err
		}
	}
	return nil
}

func (v variant) close() {
	for _, db := range v.pools {
		if db != nil {
			db.Close()
		}
	}
}

// runFirstDay creates the tables of both shards, runs the shop for a day on each, and shows its ids.
func (v variant) runFirstDay(ctx context.Context, scr *screen, server *sql.DB) error {
	for i, db := range v.pools {
		if err := createTables(ctx, server, v.names[i], v.key); err != nil {
			return v.wrapShardError(i, err)
		}
		if err := (shop{db}).runDay(ctx, v.customers[i]...); err != nil {
			return v.wrapShardError(i, err)
		}
		line := fmt.Sprintf("   shard %c   ", 'a'+i)
		for _, table := range []string{"customers", "orders", "order_items"} {
			ids, err := idList(ctx, db, table)
			if err != nil {
				return v.wrapShardError(i, err)
			}
			line += fmt.Sprintf("%-*s", len(table)+9, table+" "+ids)
		}
		scr.printf("%s\n", strings.TrimRight(line, " "))
	}
	return nil
}

func (v variant) wrapShardError(shard int, err error) error {
	return fmt.Errorf("shard %c with driver %s: %w", 'a'+shard, v.driverName, err)
}

// idList returns a table's ids in short form: 1, 2, 7-12.
func idList(ctx context.Context, db *sql.DB, table string) (string, error) {
	rows, err := db.QueryContext(ctx, "SELECT id FROM "+table+" ORDER BY id")
	if err != nil {
		return "", err
	}
	defer rows.Close()
	var runs [][2]int64
	for rows.Next() {
		var id int64
		if err := rows.Scan(&id); err != nil {
			return "", err
		}
		if n := len(runs); n > 0 && runs[n-1][1] == id-1 {
			runs[n-1][1] = id
		} else {
			runs = append(runs, [2]int64{id, id})
		}
	}
	words := make([]string, len(runs))
	for i, r := range runs {
		words[i] = fmt.Sprint(r[0])
		if r[1] > r[0] {
			words[i] = fmt.Sprintf("%d-%d", r[0], r[1])
		}
	}
	return strings.Join(words, ", "), rows.Err()
}

// createTables selects a database and creates the shop's tables in it.
func createTables(ctx context.Context, db *sql.DB, database, key string) error {
	for _, stmt := range append([]string{"USE " + database}, schema(key)...) {
		if _, err := db.ExecContext(ctx, stmt); err != nil {
			return err
		}
	}
	return nil
}

// merge copies both shards into one database, as for joining shards, building a warehouse or moving rows between
// shards. It returns the server's error if ids collide.
func (v variant) merge(ctx context.Context, db *sql.DB) error {
	if err := createTables(ctx, db, v.merged, ""); err != nil {
		return err
	}
	if _, err := db.ExecContext(ctx, "ALTER TABLE products DROP INDEX sku"); err != nil { // both shards have a row for tea
		return err
	}
	for _, shard := range v.names {
		for _, table := range tables {
			if _, err := db.ExecContext(ctx, fmt.Sprintf("INSERT INTO %s SELECT * FROM %s.%s", table, shard, table)); err != nil {
				return err
			}
		}
	}
	return nil
}

// countWholeOrders counts the merged orders that have their customer, and items that add up to their total.
func countWholeOrders(ctx context.Context, db *sql.DB, database string) (orders, whole int, err error) {
	err = db.QueryRowContext(ctx, strings.ReplaceAll(`SELECT COUNT(*), COALESCE(SUM(total = (
			SELECT SUM(i.pieces * i.price) FROM $.order_items i JOIN $.products p ON p.id = i.product_id WHERE i.order_id = o.id)
			AND EXISTS (SELECT * FROM $.customers c WHERE c.id = o.customer_id)), 0)
		FROM $.orders o`, "$", database)).Scan(&orders, &whole)
	return orders, whole, err
}

// isCollision reports whether an error means that an id exists already.
func isCollision(err error) bool {
	var my *mysql.MySQLError
	return errors.As(err, &my) && my.Number == 1062
}
