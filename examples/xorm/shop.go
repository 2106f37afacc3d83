// Package shop uses mysql-leaf through xorm: one row, batches, an upsert.
package shop

import (
	"xorm.io/xorm"
	"xorm.io/xorm/dialects"

	"github.com/leafsql/leafsql/driver"
)

// xorm finds a dialect by the driver's name.
func init() { dialects.RegisterDriver(driver.Name, dialects.QueryDriver("mysql")) }

// A Customer's key has autoincr, so that xorm omits a 0 and sets ID. It also
// makes Sync write AUTO_INCREMENT, so create the table in a migration.
type Customer struct {
	ID    int64  `xorm:"'id' pk autoincr"`
	Email string `xorm:"varchar(100) notnull unique"`
	Name  string `xorm:"varchar(100) notnull"`
}

// TableName returns the name of Customer's table.
func (Customer) TableName() string { return "customers" }

// Open opens the shop.
func Open(dsn string) (*xorm.Engine, error) {
	return xorm.NewEngine(driver.Name, dsn)
}

// Add stores a customer and sets its ID.
func Add(db xorm.Interface, c *Customer) error {
	_, err := db.InsertOne(c)
	return err
}

// AddAll stores customers with one statement. xorm does not set the IDs of a
// batch with any driver: see AddEach, or driver.WithGeneratedIDs.
func AddAll(db xorm.Interface, cs []Customer) error {
	_, err := db.Insert(&cs)
	return err
}

// AddEach stores customers one by one and sets their IDs.
func AddEach(db xorm.Interface, cs []Customer) error {
	for i := range cs {
		if _, err := db.InsertOne(&cs[i]); err != nil {
			return err
		}
	}
	return nil
}

// Put stores a customer, or renames the one with the same email. xorm has no
// upsert; ID is set to the stored row's id in both cases.
func Put(db xorm.Interface, c *Customer) error {
	res, err := db.Exec("INSERT INTO customers (email, name) VALUES (?, ?) ON DUPLICATE KEY UPDATE name = VALUES(name)", c.Email, c.Name)
	if err != nil {
		return err
	}
	c.ID, err = res.LastInsertId()
	return err
}
