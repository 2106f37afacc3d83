package staged

import (
	"strings"

	"github.com/leafsql/leafsql/driver/internal/insert"
	"github.com/leafsql/leafsql/internal/quote"
	"github.com/leafsql/leafsql/internal/servererr"
)

// A refusal is the reason why a staged statement is not run, and a hint, with the names of values in
// braces.
type refusal struct{ reason, fix string }

// refuse returns the refusal of a statement that writes a table. values are pairs of a name in braces and
// its value.
func (r refusal) refuse(t *insert.Table, values ...string) error {
	fill := strings.NewReplacer(values...)
	return t.Refuse(fill.Replace(r.reason), fill.Replace(r.fix))
}

const (
	useValues       = "insert the rows with VALUES"
	readFirst       = "read the rows and insert them with VALUES"
	sourceRunsFirst = ", and the source runs to its end before the first row is stored"
	keysBecomeNull  = "{server} takes keys that are selected for NULL where a table has a trigger BEFORE INSERT or UPDATE (MDEV-36026)"
	grantApplies    = " to this user: it counts at once, but rights on *.* and roles only for new connections"
)

// Refusals when the statement is planned.
var (
	returningRefused     = refusal{"RETURNING beside rows that only the server knows", readFirst + ", or SELECT them afterwards"}
	onTiDB               = refusal{"INSERT … SELECT and LOAD DATA are not filled on TiDB", "SELECT the rows, or read the file, in the program and insert them with VALUES"}
	serverTooOld         = refusal{"a statement whose rows only the server knows needs MySQL 8.0 or MariaDB 10.2, and this is {server}", readFirst}
	keysNulled           = refusal{keysBecomeNull, "upgrade the server to {fixed}, or " + readFirst}
	keysMayBeNulled      = refusal{keysBecomeNull + ", and this user may not see this one's triggers", "GRANT TRIGGER ON {table} to this user itself, since a role's rights are not shown, upgrade the server to {fixed}, or " + readFirst}
	joinConditionRefused = refusal{"the server would read ON DUPLICATE as the condition of its source's last join", "write WHERE TRUE after the join"}
	sameNameRefused      = refusal{"its update list names a column of the table by a name that the source has, too", "give the table of the source another alias"}
	setsIDRefused        = refusal{"{part} calls LAST_INSERT_ID(…), and is evaluated by a statement of its own", "SELECT LAST_INSERT_ID(…) before, or give the value without it"}
	hiddenFunction       = refusal{"it calls a stored function whose text this user may not see, and runs as several statements, which the function could notice", "GRANT SHOW_ROUTINE (on MariaDB SELECT ON mysql.proc) to this user, or " + useValues}
	functionUsesTable    = refusal{"a stored function that its source calls uses the table" + sourceRunsFirst, useValues}
	orderMatters         = refusal{"its source, or a function that it calls, and what runs with each row use {name}" + sourceRunsFirst, useValues}
	countsPrevious       = refusal{"{call} would tell of leafsql's own statements, since this one runs as several", "put it into a user variable first"}
)

// Refusals when the statement runs.
var (
	unknownColumn = refusal{"its update list names a column of the source that leafsql does not find among the selected ones ({message})",
		"list the column as it is and not by *, with its table's name if tables are joined, and name one table's columns alone; or use VALUES(column of the insert)"}
	nameTaken         = refusal{"its rows go through a temporary table named " + stageTable + ", and the session has another one of that name", "rename or drop that table"}
	hidesTransactions = refusal{"this server, or the proxy before it, does not show whether a transaction is open", useValues + ", or connect to the MySQL server itself"}
	setsGTID          = refusal{"gtid_next is set, and its first statement would use it up", "run it between BEGIN and COMMIT"}
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
	{"list the columns that the defaults of others are made of, too", "default value", []uint16{servererr.UnknownColumn}}, // on MySQL
	{"write fewer columns in one statement", "", []uint16{servererr.CannotCreate, servererr.TooManyColumns, servererr.RowTooLarge, servererr.TooManyFields}},
}

// explainCreateError returns a refusal if the error of creating the stage has a hint, and err otherwise. No
// part of the statement has run.
func explainCreateError(t *insert.Table, err error) error {
	for _, known := range createErrors {
		if servererr.Is(err, known.errors...) && strings.Contains(servererr.Message(err), known.message) {
			return refusal{"its rows go through a temporary table, which the server refuses ({message})", known.fix}.refuse(t,
				"{message}", servererr.Message(err), "{table}", t.Name.Quoted(), "{database}", quote.Name(t.Name.DB))
		}
	}
	return err
}
