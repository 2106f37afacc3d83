package staged

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/go-sql-driver/mysql"

	"github.com/leafsql/leafsql/driver/internal/catalog"
	"github.com/leafsql/leafsql/driver/internal/insert"
	"github.com/leafsql/leafsql/driver/internal/session"
	"github.com/leafsql/leafsql/internal/servererr"
)

// This file opens and ends the transaction of a Run, and restores the session: its transaction and its id. It also drops
// the stage, the temporary table.

// start runs the first statement of a run. Before that, it opens a transaction, or makes a savepoint if
// a transaction is open or autocommit is off. START TRANSACTION is not used, since it ends LOCK TABLES.
func (s *Run) start(ctx context.Context, text string) error {
	if s.inTransaction {
		return s.Session.ExecText(ctx, text)
	}
	s.runs++
	marker := "@leafsql_run = " + strconv.Itoa(s.runs) // in SET an assignment; in a later SELECT a comparison that is true if the SET was executed
	note := marker + ", " + insert.SaveID + s.startAssignments
	// A SET executes either all of its assignments or none.
	outside := "autocommit = IF(@@autocommit AND NOT @@in_transaction, 0, 2)"
	if !s.Session.Settings.MariaDB {
		switch shows, err := s.Server.Catalog.ShowsTransactions(ctx); {
		case err != nil:
			return err
		case !shows: // an open transaction of the application could not be detected
			return hidesTransactions.refuse(s.Insert.Table)
		}
		outside = catalog.FailsInTransaction + ", autocommit = IF(@@autocommit, 0, 2)"
	}
	err := s.execAll(ctx, "SET "+outside+", "+note, text)
	if servererr.Is(err, servererr.OwnsGTID) { // raised only if no transaction is open
		if off, unknown := s.queryCondition(ctx, "@@autocommit = 0"); !off {
			return cmp.Or(unknown, setsGTID.refuse(s.Insert.Table))
		}
	}
	s.ownsTransaction = !servererr.Is(err, servererr.WrongValue, servererr.InTransaction, servererr.OwnsGTID)
	if !s.ownsTransaction {
		err = s.execAll(ctx, "SAVEPOINT "+savepoint, "SET "+note, text)
	}
	if s.inTransaction = err == nil; !s.inTransaction { // the transaction may be open: the error may come from the statement that followed, or from the connection
		s.inTransaction, _ = s.queryCondition(ctx, marker)
	}
	return err
}

// execAll runs statements in order until one fails. On MariaDB they are sent in one round trip, as a block, except under
// sql_mode ORACLE, which does not allow such a block.
func (s *Run) execAll(ctx context.Context, texts ...string) (err error) {
	if s.Session.Settings.MariaDB {
		if err = s.Session.ExecText(ctx, "BEGIN NOT ATOMIC "+strings.Join(texts, "; ")+"; END"); !servererr.Is(err, servererr.Parse) {
			return err
		}
	}
	for _, text := range texts {
		if err = s.Session.ExecText(ctx, text); err != nil {
			break
		}
	}
	return err
}

// queryCondition is called after an error. It queries a condition that shows which statements have run. If the connection
// does not respond, it is closed.
func (s *Run) queryCondition(ctx context.Context, condition string) (yes bool, err error) {
	err = session.RetryUncancelled(ctx, func(ctx context.Context) error {
		v, err := session.QueryValue(ctx, s.Session.Conn, condition)
		yes = v == "1"
		return err
	})
	if err != nil {
		s.Session.CloseBroken()
	}
	return yes, err
}

// savepoint is a name that no application is expected to use.
const savepoint = "leafsql_savepoint"

// finish commits if the transaction is internal, sets the session's id and drops the stage.
//
// SET autocommit = 1 commits. If the commit fails, autocommit remains off. So after an error, @@autocommit
// shows whether the rows are stored. After SET autocommit = 1, an earlier SET TRANSACTION still applies to the next
// transaction. An empty COMMIT ends this. On MySQL, setting transaction_isolation and transaction_read_only to
// their session values has the same effect and saves a round trip.
func (s *Run) finish(ctx context.Context) error {
	if !s.ownsTransaction {
		if s.setID != "" {
			s.Session.Restore(ctx, "SET "+s.setID)
		}
		return nil // the stage is not dropped, since DROP would change ROW_COUNT()
	}
	commit := "SET autocommit = 1"
	if s.setID != "" {
		commit += ", " + s.setID
	}
	texts, drop := []string{commit + ", SESSION transaction_isolation = @@session.transaction_isolation, SESSION transaction_read_only = @@session.transaction_read_only"}, []string(nil)
	if s.Session.Settings.MariaDB {
		texts, drop = []string{commit, "COMMIT AND NO CHAIN NO RELEASE"}, []string{dropStage + s.name}
	}
	if err := s.execAll(ctx, slices.Concat(texts, drop)...); err != nil {
		switch stored, unknown := s.queryCondition(ctx, "@@autocommit = 1"); {
		case unknown != nil && errors.As(err, new(*mysql.MySQLError)):
			return mysql.ErrInvalidConn // a server's error would mean that no row is stored
		case unknown != nil:
			return err
		case !stored:
			s.rollBack(ctx, err)
			return err
		}
		s.Session.Restore(ctx, texts...) // again, since some of the statements may not have run
	} else if drop != nil {
		s.leftTables = slices.DeleteFunc(s.leftTables, func(name string) bool { return name == s.name })
	}
	s.DropLeftTables(ctx, s.Session)
	return nil
}

// rollBack restores the session after a failed statement, and rolls back its changes. A transaction that
// SET TRANSACTION made read only has no changes. It is ended by SET autocommit = 1 and not by
// ROLLBACK, so that the application's next transaction stays read only.
func (s *Run) rollBack(ctx context.Context, err error) {
	switch {
	case !s.inTransaction:
	case !s.ownsTransaction:
		s.Session.Restore(ctx, "ROLLBACK TO SAVEPOINT "+savepoint, "SET "+insert.RestoreID)
	case servererr.Is(err, servererr.ReadOnly) || s.Session.Restore(ctx, "ROLLBACK AND NO CHAIN NO RELEASE"):
		if s.Session.Restore(ctx, "SET autocommit = 1, "+insert.RestoreID) {
			s.DropLeftTables(ctx, s.Session)
		}
	}
}

// DropLeftTables drops the stages of earlier runs on a connection. A stage that the server does not drop now
// is dropped at a later call.
func (st *ConnState) DropLeftTables(ctx context.Context, s *session.Session) {
	for len(st.leftTables) > 0 && s.ExecUncancelled(ctx, dropStage+st.leftTables[0]) == nil {
		st.leftTables = st.leftTables[1:]
	}
}
