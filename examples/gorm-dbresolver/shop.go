// Package shop splits reads and writes with GORM's dbresolver: writes go to the primary, through mysql-leaf, and reads
// go to a replica, through the plain driver.
package shop

import (
	"gorm.io/driver/mysql"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/logger"
	"gorm.io/plugin/dbresolver"

	"github.com/leafsql/leafsql/driver"
)

type Customer struct {
	ID    int64  `gorm:"primaryKey;autoIncrement:false;default:(-)"`
	Email string `gorm:"size:100;not null;uniqueIndex"`
	Name  string `gorm:"size:100"`
}

// Open opens the shop. Only the primary's DSN has leafTables.
func Open(primary, replica string) (*gorm.DB, error) {
	db, err := gorm.Open(mysql.New(mysql.Config{DriverName: driver.Name, DSN: primary}), &gorm.Config{Logger: logger.Discard})
	if err != nil {
		return nil, err
	}
	return db, db.Use(dbresolver.Register(dbresolver.Config{Replicas: []gorm.Dialector{mysql.Open(replica)}}))
}

// Find reads from a replica, which may not have a new row yet.
func Find(db *gorm.DB, email string) (c Customer, err error) {
	return c, db.Take(&c, "email = ?", email).Error
}

// FindNow reads from the primary.
func FindNow(db *gorm.DB, email string) (Customer, error) {
	return Find(db.Clauses(dbresolver.Write), email)
}

// Rename reads and writes in one transaction, which runs entirely on the primary.
func Rename(db *gorm.DB, email, name string) error {
	return db.Transaction(func(tx *gorm.DB) error {
		var c Customer
		if err := tx.Clauses(clause.Locking{Strength: clause.LockingStrengthUpdate}).Take(&c, "email = ?", email).Error; err != nil {
			return err
		}
		return tx.Model(&c).Update("name", name).Error
	})
}
