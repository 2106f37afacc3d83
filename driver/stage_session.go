package driver

import (
	"context"
	"strings"
	"time"
)

// How a staging leaves the session as it found it: the transaction that its
// statements are, LAST_INSERT_ID() and the temporary table.

// begin finds out how to open a transaction, or a savepoint where one is open or
// autocommit is off. START TRANSACTION would not do: it ends LOCK TABLES.
func (s *staging) begin(ctx context.Context) (err error) {
	if s.own, err = s.outside(ctx); err != nil {
		return err
	}
	switch {
	case s.own:
		s.opening = []string{"SET autocommit = 0, @leafsql_l = LAST_INSERT_ID()"}
	case s.c.settings.MariaDB:
		s.opening = []string{"SAVEPOINT " + savepoint, "SET @leafsql_l = LAST_INSERT_ID()"}
	default:
		s.opening = []string{"SET @leafsql_l = LAST_INSERT_ID()"}
	}
	return nil
}

// start runs the first statement of the transaction, and before it what opens
// that.
func (s *staging) start(ctx context.Context, text string) error {
	if !s.open && len(s.opening) > 0 {
		if s.c.settings.MariaDB {
			err := s.exec(ctx, together(append(s.opening, text)...))
			if s.open = err == nil; s.open || isServerError(err, errQueryKilled) {
				return err
			}
		}
		for _, opening := range s.opening {
			if err := s.exec(ctx, opening); err != nil {
				return err
			}
		}
	}
	s.open = true
	return s.exec(ctx, text)
}

// together is a text that runs several in one round trip. MariaDB alone takes it,
// except under sql_mode ORACLE. Where it fails, some of them may have run: pass only
// such as may run again.
func together(texts ...string) string {
	return "BEGIN NOT ATOMIC " + strings.Join(texts, "; ") + "; END"
}

// outside says whether no transaction is open and autocommit is on. MySQL has no
// variable that tells it, so a savepoint is set: outside a transaction it is gone at
// once, and going back to it fails.
func (s *staging) outside(ctx context.Context) (bool, error) {
	if s.c.settings.MariaDB {
		v, err := value(ctx, s.c.innerConn, "@@autocommit AND NOT @@in_transaction")
		return v == "1", err
	}
	if err := s.exec(ctx, "SAVEPOINT "+savepoint); err != nil {
		return false, err
	}
	err := s.exec(ctx, "ROLLBACK TO SAVEPOINT "+savepoint)
	if isServerError(err, errNoSavepoint) {
		return true, nil
	}
	return false, err
}

// savepoint has a name that no application uses for its own.
const savepoint = "leafsql_savepoint"

// idBefore is the assignment that puts LAST_INSERT_ID() back to what begin noted.
const idBefore = "last_insert_id = @leafsql_l"

// end commits, where the transaction is this run's own, and makes an assignment
// to last_insert_id, "" for none. A commit that fails is the statement's error; what
// fails after it is not, since the rows are stored. SET autocommit = 1 would commit
// too, but only COMMIT ends what SET TRANSACTION said of one transaction. It says
// NO CHAIN NO RELEASE because completion_type may give a bare one another meaning.
func (s *staging) end(ctx context.Context, setID string) error {
	if !s.own {
		if setID != "" {
			s.putBack(ctx, "SET "+setID)
		}
		return nil // the temporary table stays: dropping it would change what ROW_COUNT() says
	}
	if err := s.exec(ctx, "COMMIT AND NO CHAIN NO RELEASE"); err != nil {
		s.undo(ctx, err)
		return err
	}
	back := "SET autocommit = 1"
	if setID != "" {
		back += ", " + setID
	}
	s.close(ctx, back)
	return nil
}

// close ends what this run changed of the session, and drops the temporary
// table.
func (s *staging) close(ctx context.Context, back string) {
	if s.c.settings.MariaDB && s.c.always(ctx, together(back, dropStage+s.name)) == nil {
		s.c.stageLeft = ""
	} else if s.putBack(ctx, back) {
		s.c.dropLeftStage(ctx)
	}
}

// undo leaves the session as it was before the statement that failed, and nothing of
// it stored. In a transaction that SET TRANSACTION made read only nothing was: SET
// autocommit = 1 ends it, and the application's next one is read only still, which it
// would not be after a ROLLBACK.
func (s *staging) undo(ctx context.Context, err error) {
	switch {
	case !s.own && s.open:
		s.putBack(ctx, "ROLLBACK TO SAVEPOINT "+savepoint, "SET "+idBefore)
	case !s.own:
	case !s.open:
		s.putBack(ctx, "SET autocommit = 1")
	case isServerError(err, errReadOnly) || s.putBack(ctx, "ROLLBACK AND NO CHAIN NO RELEASE"):
		s.close(ctx, "SET autocommit = 1, "+idBefore)
	}
}

// putBack runs what puts the session back. A connection on which that fails is
// closed: what the application did on it next would not be what it means.
func (s *staging) putBack(ctx context.Context, texts ...string) bool {
	for _, text := range texts {
		// After a deadlock the server has rolled everything back already.
		if err := s.c.always(ctx, text); err != nil && !isServerError(err, errNoSavepoint) {
			s.c.broken = true
			s.c.innerConn.Close()
			return false
		}
	}
	return true
}

// undoTimeout bounds each statement that puts a session back, where the caller
// does not wait without bound.
const undoTimeout = 5 * time.Second

// always runs a statement even where the caller's context has ended, and up to three
// times if it is killed.
func (c *conn) always(ctx context.Context, text string) (err error) {
	for range 3 {
		undo, cancel := ctx, context.CancelFunc(func() {})
		if ctx.Done() != nil {
			undo, cancel = context.WithTimeout(context.WithoutCancel(ctx), undoTimeout)
		}
		_, err = c.innerConn.ExecContext(undo, text, nil)
		cancel()
		if !isServerError(err, errQueryKilled) {
			break
		}
	}
	return err
}

// dropLeftStage drops the temporary table of the last staging. Where the
// server does not let it be dropped now it stays for another time.
func (c *conn) dropLeftStage(ctx context.Context) {
	if c.stageLeft != "" && c.always(ctx, dropStage+c.stageLeft) == nil {
		c.stageLeft = ""
	}
}
