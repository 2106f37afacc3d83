package counters

import (
	"fmt"

	"github.com/leafsql/leafsql/driver/internal/catalog"
	"github.com/leafsql/leafsql/driver/internal/ids"
	"github.com/leafsql/leafsql/internal/errprefix"
	"github.com/leafsql/leafsql/internal/servererr"
)

// A FillError is driver.FillError.
type FillError struct {
	Table string // db.table
	Rows  int    // ids requested; 0 if Key is set
	Key   int64  // the explicit key above which the counter could not be moved; 0 if Rows is set
	Err   error
}

func (e *FillError) Error() string {
	cause, way := errprefix.TrimText(e.Err), ""
	what := "cannot get an id"
	switch {
	case e.Key > 0:
		what = fmt.Sprintf("cannot move the counter above the key %d", e.Key)
		way = "leafExplicit=keep stores explicit keys without moving the counter"
	case e.Rows > 1:
		what = fmt.Sprintf("cannot get %d ids", e.Rows)
	}
	return errprefix.Format("table "+e.Table, what+": "+cause, way)
}

// Unwrap returns Err.
func (e *FillError) Unwrap() error { return e.Err }

// A ConfigError is driver.ConfigError.
type ConfigError struct {
	Param  string // the parameter's name in a DSN
	Reason string
	Fix    string
}

func (e *ConfigError) Error() string { return errprefix.Format(e.Param, e.Reason, e.Fix) }

// AllocError returns the error of an internal statement on leaf_alloc or t_sequence: a *ConfigError if the configuration or a
// missing right is the cause, otherwise a *catalog.Failure.
func (c *Counters) AllocError(table, what string, err error) error {
	if table != ids.SequenceTable {
		table = "leaf_alloc (" + table + ")"
	}
	what = table + ": " + what
	switch {
	case servererr.Is(err, servererr.NoSuchTable, servererr.NoDatabase):
		way := "set leafAllocTable=[db.]table to its name or leafStore to its database, or leafTables=none to fill no table"
		if !c.Config.Create {
			way = "add leafCreate=true to create it, " + way
		}
		return &ConfigError{"leafAllocTable", what + ": " + servererr.Message(err), way}
	case servererr.Is(err, servererr.UnknownDatabase):
		return &ConfigError{"leafStore", what + ": " + servererr.Message(err), "create the database, or correct the DSN"}
	case servererr.Denied(err):
		return &ConfigError{"leafAllocTable", what + ": " + servererr.Message(err), "GRANT SELECT, UPDATE on it to this user, with leafCreate also CREATE and INSERT"}
	}
	return &catalog.Failure{What: what, Err: err}
}
