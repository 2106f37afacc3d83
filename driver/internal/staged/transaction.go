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

// How a Run leaves the session as it found it: the transaction that its
// statements are, the session's id and the stage.

// start runs the first statement of a run, and before it what opens its
// transaction, or makes a savepoint where one is open or autocommit is off.
// START TRANSACTION would not do: it ends LOCK TABLES.
func (s *Run) start(ctx context.Context, text string) error {
	if s.open {
		return s.Session.ExecText(ctx, text)
	}
	s.runs++
	marker := "@leafsql_run = " + strconv.Itoa(s.runs) // an assignment, and later the question whether it was made
	note := marker + ", " + insert.SaveID + s.note
	// A SET makes all its assignments or none.
	outside := "autocommit = IF(@@autocommit AND NOT @@in_transaction, 0, 2)"
	if !s.Session.Settings.MariaDB {
		switch shows, err := s.Server.Catalog.ShowsTransactions(ctx); {
		case err != nil:
			return err
		case !shows: // it could not be told from one of the application's
			return hidesTransactions.on(s.Insert.Table)
		}
		outside = catalog.FailsInTransaction + ", autocommit = IF(@@autocommit, 0, 2)"
	}
	err := s.execAll(ctx, "SET "+outside+", "+note, text)
	if servererr.Is(err, servererr.OwnsGTID) { // and no transaction is open
		if off, unknown := s.holds(ctx, "@@autocommit = 0"); !off {
			return cmp.Or(unknown, setsGTID.on(s.Insert.Table))
		}
	}
	s.own = !servererr.Is(err, servererr.WrongValue, servererr.InTransaction, servererr.OwnsGTID)
	if !s.own {
		err = s.execAll(ctx, "SAVEPOINT "+savepoint, "SET "+note, text)
	}
	if s.open = err == nil; !s.open { // perhaps of what ran behind it, or of the connection
		s.open, _ = s.holds(ctx, marker)
	}
	return err
}

// execAll runs texts one after the other until one fails. MariaDB takes them in one round
// trip, except under sql_mode ORACLE, where it runs none of a block.
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

// holds asks after an error for a condition that tells how far the statements came. A
// connection that does not answer is closed.
func (s *Run) holds(ctx context.Context, condition string) (yes bool, err error) {
	err = session.Insist(ctx, func(ctx context.Context) error {
		v, err := session.Value(ctx, s.Session.Conn, condition)
		yes = v == "1"
		return err
	})
	if err != nil {
		s.Session.GiveUp()
	}
	return yes, err
}

// savepoint has a name that no application uses for its own.
const savepoint = "leafsql_savepoint"

// end commits, where the transaction is this run's own, sets the session's id and drops
// the stage.
//
// SET autocommit = 1 commits, and where it cannot it leaves autocommit off: so that
// tells, behind an error, whether the rows are stored. It does not end what SET
// TRANSACTION said of one transaction. An empty COMMIT does, and on MySQL, where that
// would be one more round trip, setting the session's own once more.
func (s *Run) end(ctx context.Context) error {
	if !s.own {
		if s.setID != "" {
			s.Session.PutBack(ctx, "SET "+s.setID)
		}
		return nil // the stage stays: dropping it would change what ROW_COUNT() says
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
		switch stored, unknown := s.holds(ctx, "@@autocommit = 1"); {
		case unknown != nil && errors.As(err, new(*mysql.MySQLError)):
			return mysql.ErrInvalidConn // a server's error would mean that nothing is stored
		case unknown != nil:
			return err
		case !stored:
			s.undo(ctx, err)
			return err
		}
		s.Session.PutBack(ctx, texts...) // what of them did not run
	} else if drop != nil {
		s.left = slices.DeleteFunc(s.left, func(name string) bool { return name == s.name })
	}
	s.DropLeft(ctx, s.Session)
	return nil
}

// undo leaves the session as it was before the statement that failed, and nothing of
// it stored. In a transaction that SET TRANSACTION made read only nothing was: SET
// autocommit = 1 ends it, and the application's next one is read only still, which it
// would not be after a ROLLBACK.
func (s *Run) undo(ctx context.Context, err error) {
	switch {
	case !s.open:
	case !s.own:
		s.Session.PutBack(ctx, "ROLLBACK TO SAVEPOINT "+savepoint, "SET "+insert.RestoreID)
	case servererr.Is(err, servererr.ReadOnly) || s.Session.PutBack(ctx, "ROLLBACK AND NO CHAIN NO RELEASE"):
		if s.Session.PutBack(ctx, "SET autocommit = 1, "+insert.RestoreID) {
			s.DropLeft(ctx, s.Session)
		}
	}
}

// DropLeft drops the stages of earlier runs on a connection. One that the
// server does not let it drop now stays for another time.
func (st *Stage) DropLeft(ctx context.Context, s *session.Session) {
	for len(st.left) > 0 && s.Always(ctx, dropStage+st.left[0]) == nil {
		st.left = st.left[1:]
	}
}
