package staged

import (
	"strings"

	"github.com/leafsql/leafsql/driver/internal/insert"
	"github.com/leafsql/leafsql/internal/quote"
	"github.com/leafsql/leafsql/internal/servererr"
)

// A refusal is the reason why a staged statement is not run, and a hint. Both may contain names of values
// in braces.
type refusal struct{ reason, fix string }

// refuse returns the refusal of a statement that writes t. values are pairs of a name in braces and
// its value.
func (r refusal) refuse(t *insert.Table, values ...string) error {
	fill := strings.NewReplacer(values...)
	return t.Refuse(fill.Replace(r.reason), fill.Replace(r.fix))
}

const (
	useValues       = "insert the rows with VALUES"
	readFirst       = "read the rows and insert them with VALUES"
	sourceRunsFirst = ", but leafsql runs the whole source before it stores the first row"
	keysBecomeNull  = "{server} replaces selected keys by NULL if a table has a trigger BEFORE INSERT or UPDATE (MDEV-36026)"
	grantApplies    = " to this user, which takes effect at once; rights on *.* and roles take effect for new connections"
)

// Refusals when the statement is planned.
var (
	returningRefused     = refusal{"it has RETURNING, and only the server can compute its rows", readFirst + ", or SELECT them afterwards"}
	notStaged            = refusal{"INSERT … SELECT and LOAD DATA are not filled on {server}", "SELECT the rows, or read the file, in the program and insert them with VALUES"}
	serverTooOld         = refusal{"only the server can compute its rows, which needs MySQL 8.0 or MariaDB 10.2, and this is {server}", readFirst}
	keysNulled           = refusal{keysBecomeNull, "upgrade the server to {fixed}, or " + readFirst}
	keysMayBeNulled      = refusal{keysBecomeNull + ", and this user has no right to see this table's triggers", "GRANT TRIGGER ON {table} to this user itself, since a role's rights are not shown, upgrade the server to {fixed}, or " + readFirst}
	joinConditionRefused = refusal{"the server would read ON DUPLICATE as the condition of its source's last join", "write WHERE TRUE after the join"}
	sameNameRefused      = refusal{"its update list has a column name that both the table and the source have", "give the table of the source another alias"}
	setsIDRefused        = refusal{"{part} calls LAST_INSERT_ID(…), and runs as a separate statement", "SELECT LAST_INSERT_ID(…) first, or pass the value without it"}
	hiddenFunction       = refusal{"it runs as several statements, and calls a stored function whose text this user has no right to see and which may depend on that", "GRANT SHOW_ROUTINE (on MariaDB SELECT ON mysql.proc) to this user, or " + useValues}
	functionUsesTable    = refusal{"a stored function that its source calls uses the table" + sourceRunsFirst, useValues}
	orderMatters         = refusal{"its source, or a function that it calls, and the triggers or defaults of the table use {name}" + sourceRunsFirst, useValues}
	countsPrevious       = refusal{"{call} would return the result of an internal statement of leafsql, because it runs as several statements", "store it in a user variable first"}
)

// Refusals when the statement runs.
var (
	unknownColumn = refusal{"its update list has a column of the source that is not among the selected columns ({message})",
		"select the column by its name and not by *, with the table's name if tables are joined; or use VALUES(column of the insert)"}
	nameTaken         = refusal{"leafsql stages its rows in a temporary table " + stageTable + ", and the session has another table with this name", "rename or drop that table"}
	hidesTransactions = refusal{"this server, or a proxy in front of it, does not report whether a transaction is open", useValues + ", or connect to the MySQL server directly"}
	setsGTID          = refusal{"gtid_next is set, and applies only to the first of its statements", "run it between BEGIN and COMMIT"}
)

// createErrors are the hints for errors of the statement that creates the stage.
var createErrors = []struct {
	fix     string
	message string // a part of the error's message; "" matches any
	errors  []uint16
}{
	{"GRANT CREATE TEMPORARY TABLES ON {database}.*" + grantApplies, "", []uint16{servererr.DatabaseDenied}},
	{"GRANT SELECT ON {table}" + grantApplies, "", []uint16{servererr.TableDenied, servererr.ColumnDenied}},
	{"run it outside of the XA transaction, or SET xa_detach_on_prepare = OFF", "", []uint16{servererr.XA}},
	{"use binlog_format=ROW", "", []uint16{servererr.GTIDCreate, servererr.GTIDCreateOld}},
	{"also list the columns that the defaults of other columns use", "default value", []uint16{servererr.UnknownColumn}}, // on MySQL
	{"write fewer columns in one statement", "", []uint16{servererr.CannotCreate, servererr.TooManyColumns, servererr.RowTooLarge, servererr.TooManyFields}},
}

// explainCreateError returns a refusal if the error of creating the stage has a hint, and err otherwise. No
// part of the statement has run.
func explainCreateError(t *insert.Table, err error) error {
	for _, known := range createErrors {
		if servererr.Is(err, known.errors...) && strings.Contains(servererr.Message(err), known.message) {
			return refusal{"leafsql stages its rows in a temporary table, which the server refuses ({message})", known.fix}.refuse(t,
				"{message}", servererr.Message(err), "{table}", t.Name.Quoted(), "{database}", quote.Name(t.Name.DB))
		}
	}
	return err
}
