// Package shop uses mysql-leaf through GORM: create, batches, associations,
// upserts, soft delete.
package shop

import (
	"gorm.io/driver/mysql"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/logger"

	"github.com/leafsql/leafsql/driver"
)

// A Customer's key has default:(-), "the database has a default", so that GORM
// omits a zero ID and reads the new one back. autoIncrement:false only matters
// to AutoMigrate, which then creates the column without AUTO_INCREMENT; with
// autoIncrement:false alone, GORM would send a 0 and read nothing back.
//
// Models that keep GORM's plain `ID int64` or gorm.Model work unchanged: the
// column then still has AUTO_INCREMENT, and leafsql logs a warning about it.
type Customer struct {
	ID        int64  `gorm:"primaryKey;autoIncrement:false;default:(-)"`
	Email     string `gorm:"size:100;not null;uniqueIndex"`
	Name      string `gorm:"size:100"`
	DeletedAt gorm.DeletedAt
	Orders    []Order
}

// An Order belongs to a Customer.
type Order struct {
	ID         int64 `gorm:"primaryKey;autoIncrement:false;default:(-)"`
	CustomerID int64 `gorm:"not null"`
	Customer   *Customer
	Total      int64
}

// Open opens the shop and creates its tables.
func Open(dsn string) (*gorm.DB, error) {
	db, err := gorm.Open(mysql.New(mysql.Config{DriverName: driver.Name, DSN: dsn}), &gorm.Config{
		Logger: logger.Discard,
	})
	if err != nil {
		return nil, err
	}
	return db, db.AutoMigrate(&Customer{}, &Order{})
}

// Add stores a customer with its orders, and sets all their IDs.
func Add(db *gorm.DB, c *Customer) error {
	return db.Create(c).Error
}

// AddAll stores customers, size at a time, and sets their IDs.
func AddAll(db *gorm.DB, cs []Customer, size int) error {
	return db.CreateInBatches(cs, size).Error
}

// Put stores a customer, or renames the one with the same email. ID is set to
// the stored row's id in both cases.
func Put(db *gorm.DB, c *Customer) error {
	return db.Clauses(clause.OnConflict{
		Columns:   []clause.Column{{Name: "email"}},
		DoUpdates: clause.AssignmentColumns([]string{"name"}),
	}).Create(c).Error
}

// AddNew stores a customer unless the email exists already.
func AddNew(db *gorm.DB, c *Customer) error {
	return db.Clauses(clause.OnConflict{DoNothing: true}).Create(c).Error
}
