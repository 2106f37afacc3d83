package driver

import (
	"context"
	"database/sql/driver"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/leafsql/leafsql/driver/internal/catalog"
	"github.com/leafsql/leafsql/driver/internal/insert"
)

// A staging runs one statement whose rows only the server knows, in three steps
// on the application's own connection:
//
//  1. stage   the user's source, unchanged, fills a temporary table
//  2. number  rows that lack a key are counted there, and get ids
//  3. copy    all are written to the target
//
// All of it is one transaction: the application's, up to a savepoint, or one of
// its own that ends with the copy.
type staging struct {
	c        *conn
	in       *insert.Insert
	t        *table
	name     string // the temporary table, as SQL writes it
	args     []driver.NamedValue
	prepared bool   // the user's statement was prepared
	own      bool   // the transaction is this run's own
	hint     string // behind each verb, and
	prefix   string // before each statement: what makes all say one time
}

// stageTable is the temporary table's name, in the target's database.
const stageTable = "leafsql_stage"

// copier sends the copy.
type copier func(ctx context.Context, text string, args []driver.NamedValue) error

// staged is what a staging came to.
type staged struct {
	block  insert.Block // the ids it gave
	rows   int64        // that the source had
	marked bool         // the copy carried the marker
}

func (c *conn) newStaging(in *insert.Insert, args []driver.NamedValue, prepared bool) *staging {
	name := catalog.Name{DB: in.Table.DB, Table: stageTable}.Quoted()
	return &staging{c: c, in: in, t: in.Table.Ref.(*table), name: name, args: args, prepared: prepared}
}

// stage runs a staged statement.
func (c *conn) stage(ctx context.Context, in *insert.Insert, args []driver.NamedValue, prepared bool, copy copier) (ran staged, err error) {
	s := c.newStaging(in, args, prepared)
	c.dropLeftStage(ctx)
	if err = s.begin(ctx); err != nil {
		return ran, err
	}
	if in.Stage.Clock && s.showsClock() {
		err = s.clock(ctx)
	}
	if err == nil {
		err = s.create(ctx, in.Stage.Columns, "")
	}
	if err == nil {
		ran.rows, err = s.fill(ctx)
	}
	if err == nil {
		ran.block, err = s.number(ctx, ran.rows)
	}
	// Without a row as well: the target may have an error for a select's none,
	// and RETURNING its columns.
	if err == nil && (ran.rows > 0 || !in.Stage.Load) {
		var text string
		text, ran.marked = in.Stage.Copy(s.name, s.hint, ran.block)
		if in.Table.ReadsID { // filling the temporary table changed what its triggers read
			err = s.exec(ctx, "SET last_insert_id = @leafsql_l")
		}
		if err == nil {
			err = s.copyError(copy(ctx, s.prefix+text, renumber(args[min(in.Stage.FillArgs, len(args)):])))
		}
	}
	if err != nil {
		s.undo(ctx)
		return ran, err
	}
	return ran, s.end(ctx, ran.marked || ran.rows == 0)
}

func (s *staging) exec(ctx context.Context, text string) error {
	_, err := s.c.innerConn.ExecContext(ctx, text, nil)
	return err
}

// begin asks the server whether a transaction is open, or autocommit off, and
// opens one if not. A savepoint outside of a transaction is not kept. START
// TRANSACTION would not do: it ends LOCK TABLES.
func (s *staging) begin(ctx context.Context) error {
	if err := s.exec(ctx, "SAVEPOINT leafsql"); err != nil {
		return err
	}
	err := s.exec(ctx, "ROLLBACK TO SAVEPOINT leafsql")
	switch {
	case err == nil:
		return s.exec(ctx, "SET @leafsql_l = LAST_INSERT_ID()")
	case !isServerError(err, errNoSavepoint):
		return err
	}
	s.own = true
	if err = s.exec(ctx, "SET autocommit = 0, @leafsql_l = LAST_INSERT_ID()"); err != nil {
		s.putBack(ctx, "SET autocommit = 1")
	}
	return err
}

// create makes the temporary table, with the target's column types, each of
// them nullable: triggers may mend a NULL. That of LOAD DATA has the target's
// defaults as well, and NULL in the key alone: a file may have too few fields,
// and SET reads what became of them. A user who may not read the target gets
// the types that the catalog tells. The key alone may get another name.
func (s *staging) create(ctx context.Context, columns []string, keyName string) error {
	target := catalog.Name{DB: s.in.Table.DB, Table: s.in.Table.Name}.Quoted()
	list := make([]string, len(columns))
	for i, col := range columns {
		list[i] = target + "." + catalog.Quote(col) + " " + keyName
	}
	load := s.in.Stage != nil && s.in.Stage.Load
	const engine = ") ENGINE=InnoDB ROW_FORMAT=DYNAMIC"
	begin := "CREATE TEMPORARY TABLE " + s.name + " (leafsql_n BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY"
	key, source := "", "(SELECT 1) leafsql_q LEFT JOIN "+target+" ON FALSE"
	if load {
		source = target
		if s.in.Stage.Key >= 0 {
			key = ", " + catalog.Quote(s.t.column) + " " + s.t.typ + " NULL"
		}
	}
	text := begin + key + engine + " SELECT " + strings.Join(list, ", ") + " FROM " + source + " LIMIT 0"
	err := s.createAs(ctx, text)
	if isServerError(err, errTableDenied, errColumnDenied, errUnknownColumn, errNotLocked) && !load {
		types := ", " + keyName + " " + s.t.typ + " NULL"
		if keyName == "" {
			var defErr error
			if types, defErr = s.t.c.catalog.Definitions(ctx, s.t.name, columns); defErr != nil {
				return err
			}
		}
		err = s.createAs(ctx, begin+types+engine)
	}
	if isServerError(err, errTableExists) { // left by a run that was cut off
		if err = s.exec(ctx, "DROP TEMPORARY TABLE IF EXISTS "+s.name); err == nil {
			err = s.createAs(ctx, text)
		}
	}
	s.c.stageLeft = s.name
	return s.createError(err)
}

// createAs creates the table, without regard to sql_mode where that forbids the
// defaults that the target has, and to a binary log in statements, which
// forbids a CREATE inside a transaction.
func (s *staging) createAs(ctx context.Context, text string) error {
	err := s.exec(ctx, text)
	if isServerError(err, errInvalidDefault) {
		// No SET STATEMENT: MariaDB's answer to one tells the inner driver that
		// sql_mode, by which it escapes arguments, is the one within.
		if err = s.exec(ctx, "SET @leafsql_m = @@sql_mode, sql_mode = ''"); err == nil {
			err = s.exec(ctx, text)
			if !s.putBack(ctx, "SET sql_mode = @leafsql_m") && err == nil {
				err = driver.ErrBadConn
			}
		}
	}
	if s.own && isServerError(err, errGTIDCreate, errGTIDCreateOld) {
		if err = s.exec(ctx, "SET autocommit = 1"); err == nil {
			if err = s.exec(ctx, text); err == nil {
				err = s.exec(ctx, "SET autocommit = 0")
			}
		}
	}
	return err
}

// createError is the refusal of a statement whose temporary table cannot be
// had. Nothing of it ran.
func (s *staging) createError(err error) error {
	var fix string
	switch {
	case isServerError(err, errDatabaseDenied):
		fix = "GRANT CREATE TEMPORARY TABLES ON " + catalog.Quote(s.in.Table.DB) + ".* to this user"
	case isServerError(err, errTableDenied, errColumnDenied) && s.in.Stage != nil && s.in.Stage.Load:
		fix = "GRANT SELECT ON " + s.t.name.Quoted() + " to this user"
	case isServerError(err, errXA):
		fix = "run it outside of the XA transaction, or SET xa_detach_on_prepare = OFF"
	case isServerError(err, errGTIDCreate, errGTIDCreateOld):
		fix = "run it outside of the transaction, or use binlog_format=ROW"
	case isServerError(err, errCannotCreate, errTooManyColumns, errRowTooLarge, errTooManyFields):
		fix = "write fewer columns in one statement"
	default:
		return err
	}
	return s.refusal("its rows go through a temporary table, which the server refuses ("+serverMessage(err)+")", fix)
}

func (s *staging) refusal(reason, fix string) error {
	return &RefusedError{Table: s.t.name.String(), Reason: reason, Fix: fix}
}

// showsClock says whether a default of the copy tells the time, as the source
// does.
func (s *staging) showsClock() bool {
	return slices.ContainsFunc(s.in.Table.NowColumns, func(col string) bool {
		return !slices.ContainsFunc(s.in.Stage.Columns, func(c string) bool { return strings.EqualFold(c, col) })
	})
}

// clock makes the statements that a statement runs as say one time.
func (s *staging) clock(ctx context.Context) error {
	if s.c.settings.MariaDB {
		s.prefix = "SET STATEMENT timestamp = @leafsql_t FOR "
		return s.exec(ctx, "SET @leafsql_t = UNIX_TIMESTAMP(NOW(6))")
	}
	now, err := value(ctx, s.c.innerConn, "UNIX_TIMESTAMP(NOW(6))")
	s.hint = " /*+ SET_VAR(timestamp=" + now + ") */"
	return err
}

// fill runs the user's source.
func (s *staging) fill(ctx context.Context) (rows int64, err error) {
	args := s.args[:min(s.in.Stage.FillArgs, len(s.args))]
	res, err := s.c.execArgs(ctx, s.prefix+s.in.Stage.Fill(s.name, s.hint), args, s.prepared)
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

// number draws ids for the rows that lack a key, once the counter is above the
// keys that others bring.
func (s *staging) number(ctx context.Context, rows int64) (b insert.Block, err error) {
	b.N = int(rows)
	if rows > 0 && s.in.Stage.Key >= 0 {
		var highest int64
		if b.N, highest, err = s.look(ctx); err != nil {
			return b, err
		}
		if err = s.t.skip(ctx, s.c.innerConn, highest); err != nil {
			return b, err
		}
	}
	if b.N > 0 {
		err = s.t.draw(ctx, s.c.innerConn, &b)
	}
	return b, err
}

// look counts the rows that lack a key, and finds the highest key that the
// others bring.
func (s *staging) look(ctx context.Context) (lacking int, highest int64, err error) {
	rows, err := s.c.innerConn.QueryContext(ctx, s.in.Stage.Look(s.name, s.t.highest), nil)
	if err != nil {
		return 0, 0, err
	}
	defer rows.Close()
	dest := make([]driver.Value, len(rows.Columns()))
	if err := rows.Next(dest); err != nil {
		return 0, 0, err
	}
	if lacking, err = strconv.Atoi(text(dest[0])); err != nil {
		return 0, 0, err
	}
	highest, _ = strconv.ParseInt(text(dest[1]), 10, 64) // NULL: none to follow
	return lacking, highest, nil
}

// copyError refuses an update list that names a column of the source, which is
// not there in the copy.
func (s *staging) copyError(err error) error {
	if s.in.Upsert && isServerError(err, errUnknownColumn) {
		return s.refusal("its update list names a column that the copy does not know ("+serverMessage(err)+")",
			"give the value a column of the insert, and use VALUES() in the list")
	}
	return err
}

// end commits, where the transaction is this run's own, and puts
// LAST_INSERT_ID() back unless the copy set it. The server's no to the commit
// is the statement's error; afterwards there is none. The commit is a COMMIT
// because nothing else ends what SET TRANSACTION said, and says what it means
// because completion_type gives a bare one other meanings.
func (s *staging) end(ctx context.Context, keepID bool) error {
	back := "SET last_insert_id = @leafsql_l"
	if s.own {
		if err := s.exec(ctx, "COMMIT AND NO CHAIN NO RELEASE"); err != nil {
			s.undo(ctx)
			return err
		}
		back = "SET autocommit = 1, last_insert_id = @leafsql_l"
		if keepID {
			back = "SET autocommit = 1"
		}
	} else if keepID {
		return nil // the temporary table stays: dropping it would change what ROW_COUNT() says
	}
	if s.putBack(ctx, back) && s.own {
		s.c.dropLeftStage(ctx)
	}
	return nil
}

// undo leaves the session as it was before the statement, and nothing of it
// stored.
func (s *staging) undo(ctx context.Context) {
	if !s.own {
		s.putBack(ctx, "ROLLBACK TO SAVEPOINT leafsql", "SET last_insert_id = @leafsql_l")
	} else if s.putBack(ctx, "ROLLBACK AND NO CHAIN NO RELEASE", "SET autocommit = 1, last_insert_id = @leafsql_l") {
		s.c.dropLeftStage(ctx)
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

// always runs a statement whatever became of the caller's context, again where
// it is killed.
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
	if c.stageLeft != "" && c.always(ctx, "DROP TEMPORARY TABLE IF EXISTS "+c.stageLeft) == nil {
		c.stageLeft = ""
	}
}
