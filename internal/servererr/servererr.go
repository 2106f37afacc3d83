// Package servererr names the errors of MySQL and MariaDB servers that leafsql handles.
//
//	if servererr.Is(err, servererr.NoSuchTable) { … }
//
// Package mysqlerr lists the errors after which a statement may be retried.
package servererr

import (
	"errors"
	"slices"

	"github.com/go-sql-driver/mysql"
)

// Numbers of errors.
const (
	TooManyFields        = 185 // InnoDB on MariaDB
	CannotCreate         = 1005
	DatabaseDenied       = 1044
	LoginDenied          = 1045
	NoDatabase           = 1046
	UnknownDatabase      = 1049
	TableExists          = 1050
	UnknownTable         = 1051 // DROP only
	UnknownColumn        = 1054
	DuplicateKey         = 1062
	Parse                = 1064
	NotUniqueName        = 1066
	InvalidDefault       = 1067
	TooManyColumns       = 1117
	RowTooLarge          = 1118
	ColumnCount          = 1136
	TableDenied          = 1142
	ColumnDenied         = 1143
	NoSuchTable          = 1146
	PacketTooLarge       = 1153
	TableLocked          = 1192 // or a transaction is open
	UnknownVariable      = 1193
	LockWait             = 1205
	NotPreparable        = 1295
	SpecificAccessDenied = 1227
	WrongValue           = 1231
	NoSavepoint          = 1305 // also: no such routine
	QueryKilled          = 1317
	NoSuchTrigger        = 1360
	RoutineDenied        = 1370
	XAState              = 1399
	TriggerNeedsSuper    = 1419
	SocketLoginDenied    = 1698
	InTransaction        = 1766
	GTIDCreateOld        = 1787
	ReadOnly             = 1792
	PasswordExpired      = 1820
	OwnsGTID             = 3138
	GTIDCreate           = 3748
	XA                   = 4091
)

// ErrPacketTooLarge is the server's error for a packet longer than its max_allowed_packet. It must not be changed.
var ErrPacketTooLarge = &mysql.MySQLError{Number: PacketTooLarge, SQLState: [5]byte([]byte("08S01")), Message: "Got a packet bigger than 'max_allowed_packet' bytes"}

// Is reports whether err is a server's error with one of these numbers.
func Is(err error, numbers ...uint16) bool {
	e, ok := errors.AsType[*mysql.MySQLError](err)
	return ok && slices.Contains(numbers, e.Number)
}

// Denied reports whether the server returned err because the user lacks a privilege on a database, a table or
// a column.
func Denied(err error) bool { return Is(err, DatabaseDenied, TableDenied, ColumnDenied) }

// Message returns the text of a server's error without its number, and any other error's whole text.
func Message(err error) string {
	if e, ok := errors.AsType[*mysql.MySQLError](err); ok {
		return e.Message
	}
	return err.Error()
}
