package shop_test

import (
	"context"
	"database/sql"
	"errors"
	"testing"

	"github.com/DATA-DOG/go-sqlmock"
	"github.com/go-sql-driver/mysql"

	"github.com/leafsql/leafsql/driver"
	"github.com/leafsql/leafsql/examples/internal/shopdb"
	shop "github.com/leafsql/leafsql/examples/testing"
)

// TestAddOrderRollsBack needs no server: sqlmock takes the place of mysql-leaf.
// The application sends the same statements to both. What a mock cannot show is
// that the key is filled; TestAddOrderStoresBothRows shows it.
func TestAddOrderRollsBack(t *testing.T) {
	db, mock, err := sqlmock.New()
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	refused := &mysql.MySQLError{Number: 1264, Message: "Out of range value for column 'total' at row 1"}
	mock.ExpectBegin()
	mock.ExpectExec("INSERT INTO customers").WithArgs("ann@example.com", "").WillReturnResult(sqlmock.NewResult(1001, 1))
	mock.ExpectExec("INSERT INTO orders").WithArgs(1001, 700).WillReturnError(refused)
	mock.ExpectRollback()
	if id, err := shop.AddOrder(t.Context(), db, "ann@example.com", 700); !errors.Is(err, refused) {
		t.Errorf("AddOrder() = %d, %v, want error %v", id, err, refused)
	}
	if err := mock.ExpectationsWereMet(); err != nil {
		t.Error(err)
	}
}

// TestAddOrderStoresBothRows runs on real servers, on tables without
// AUTO_INCREMENT. leafCreate=true would create leaf_alloc here.
func TestAddOrderStoresBothRows(t *testing.T) {
	shopdb.RunOnServers(t, func(t *testing.T, dsn string) {
		db, err := sql.Open(driver.Name, dsn)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		id, err := shop.AddOrder(t.Context(), db, "ann@example.com", 700)
		if id != shopdb.FirstOrder || err != nil {
			t.Errorf("AddOrder() = %d, %v, want %d", id, err, shopdb.FirstOrder)
		}
		shopdb.WantRows(t, dsn, "SELECT orders.id, total, email FROM orders JOIN customers ON customers.id = customer_id", "5001 700 ann@example.com")
	})
}

// counter is an idgen.Generator that issues fixed ids. The driver calls Next from
// several goroutines if a pool has several connections; this test has one.
type counter int64

func (c *counter) Next(_ context.Context, n int) (first int64, err error) {
	first = int64(*c)
	*c += counter(n)
	return first, nil
}

// TestAddOrderWithFixedIDs sets the ids that the test expects, without leaf_alloc.
func TestAddOrderWithFixedIDs(t *testing.T) {
	shopdb.RunOnServersWith(t, shopdb.Schema, func(t *testing.T, dsn string) {
		cfg, err := driver.ParseDSN(dsn)
		if err != nil {
			t.Fatal(err)
		}
		customers, orders := counter(7), counter(42)
		cfg.Tables = []driver.Rule{{Table: "customers", Generator: &customers}, {Table: "orders", Generator: &orders}}
		connector, err := driver.NewConnector(cfg)
		if err != nil {
			t.Fatal(err)
		}
		db := sql.OpenDB(connector)
		defer db.Close()
		id, err := shop.AddOrder(t.Context(), db, "ann@example.com", 700)
		if id != 42 || err != nil {
			t.Errorf("AddOrder() = %d, %v, want 42", id, err)
		}
		shopdb.WantRows(t, dsn, "SELECT id, customer_id FROM orders", "42 7")
	})
}
