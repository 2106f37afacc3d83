package driver

import (
	"context"
	"database/sql/driver"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/go-sql-driver/mysql"

	"github.com/leafsql/leafsql/driver/internal/catalog"
	"github.com/leafsql/leafsql/driver/internal/insert"
)

// A stageRun is one execution of a statement whose rows only the server knows, in
// three steps on the application's own connection:
//
//  1. fill    the user's source, unchanged, fills the stage, a temporary table
//  2. number  rows that lack a key are counted there, and get ids
//  3. copy    all are written to the target
//
// All of it is one transaction: the application's, from a savepoint on, or one of
// its own that ends with the copy. Of a statement whose keys alone only the server
// knows, the keys go through the stage.
type stageRun struct {
	c        *conn
	in       *insert.Insert
	t        *table
	name     string // the stage, as SQL writes it
	args     []driver.NamedValue
	prepared bool   // the user's statement was prepared
	open     bool   // the transaction is, or the savepoint is made, or neither is needed
	own      bool   // the transaction is this run's own
	note     string // assignments for the SET that opens it
	hint     string // behind each verb, on MySQL: makes all statements say one time
	prefix   string // before each statement, on MariaDB: likewise
}

// stageTable is the stage's name, in the target's database.
const stageTable = "leafsql_stage"

const dropStage = "DROP TEMPORARY TABLE IF EXISTS "

// A textSender executes or queries one of the texts that a statement runs as,
// as the application ran the statement. Of rows that answer it tells how many
// there were.
type textSender func(ctx context.Context, text string, args []driver.NamedValue) (driver.Result, error)

// A stageResult is what a stageRun came to.
type stageResult struct {
	block  insert.Block // the ids it gave
	rows   int64        // that the source had
	marked bool         // the copy carried the marker
	id     int64        // LastInsertId
	late   int64        // what LAST_INSERT_ID() becomes where the copy did not carry it
}

func (c *conn) newStageRun(in *insert.Insert, args []driver.NamedValue, prepared bool) *stageRun {
	name := catalog.Name{DB: in.Table.DB, Table: stageTable}.Quoted()
	return &stageRun{c: c, in: in, t: in.Table.Ref.(*table), name: name, args: args, prepared: prepared}
}

// runStagedOnce runs a staged statement, and does not try again.
func (c *conn) runStagedOnce(ctx context.Context, in *insert.Insert, args []driver.NamedValue, prepared bool, send textSender) (ran stageResult, err error) {
	s := c.newStageRun(in, args, prepared)
	c.dropLeftStage(ctx)
	if in.Staging.Clock && s.showsClock() {
		err = s.clock(ctx)
	}
	if err == nil {
		err = s.create(ctx, in.Staging.Columns, "")
	}
	if err == nil {
		ran.rows, err = s.fill(ctx)
	}
	highest := int64(0)
	if err == nil {
		ran.block, highest, err = s.number(ctx, ran.rows)
	}
	if err == nil && ran.rows > 0 && in.Staging.ReadsID { // filling the stage set it to a row's number there
		err = s.exec(ctx, "SET "+idBefore)
	}
	// Without a row as well: the target may have an error for a select's none,
	// and RETURNING its columns.
	if err == nil && (ran.rows > 0 || !in.Staging.Load) {
		var text string
		text, ran.marked = in.Staging.Copy(s.name, s.hint, ran.block)
		var answer driver.Result
		if answer, err = send(ctx, s.prefix+text, renumber(args[min(in.Staging.FillArgs, len(args)):])); err == nil {
			ran.id, ran.late = s.lastID(&ran, answer)
			err = s.t.skip(ctx, c.innerConn, highest)
		}
		err = s.copyError(err)
	}
	if err != nil {
		s.undo(ctx, err)
		return ran, s.named(err)
	}
	switch {
	case ran.marked || ran.rows == 0:
		return ran, s.end(ctx, "")
	case in.Late && ran.late > 0:
		return ran, s.end(ctx, "last_insert_id = "+strconv.FormatInt(ran.late, 10))
	}
	return ran, s.end(ctx, idBefore)
}

// lastID is the LastInsertId of what was copied, and what SQL's becomes where the
// copy did not carry it.
func (s *stageRun) lastID(ran *stageResult, answer driver.Result) (id, late int64) {
	in := *s.in
	in.Rows, in.Marker = int(ran.rows), ran.marked
	in.UpsertMarker = in.UpsertMarker && ran.marked && ran.rows == 1 // each row sets the marker anew
	affected, server := counts(answer)
	id, _ = lastInsertID(&in, ran.block, affected, server, s.c.connector.foundRows())
	return id, lateID(&in, ran.block, affected, id)
}

func (s *stageRun) exec(ctx context.Context, text string) error {
	_, err := s.c.innerConn.ExecContext(ctx, text, nil)
	return err
}

// checkTaken asks the server, until it said yes, whether it would take the
// text as it is, where what runs instead would hide that it would not: an update
// list whose names are the source's as well, a key that reads the target. Where
// MySQL prepares a statement MariaDB has to explain it: it resolves the names of
// an update list only when it runs. That may call functions, so that a source
// that does more than read tables is not explained: such a statement runs where
// MariaDB would call a name ambiguous.
func (c *conn) checkTaken(ctx context.Context, st *statement, text string, args []driver.NamedValue, prepared bool) error {
	in := st.apart()
	switch s, e := in.Staging, in.Evaluation; {
	case st.taken.Load(),
		s != nil && (!s.Unclear || s.Load),
		s != nil && s.Effects && c.settings.MariaDB,
		e != nil && !e.Selects:
		return nil
	}
	var err error
	if in.Staging != nil && c.settings.MariaDB {
		_, err = c.readAll(ctx, in.Staging.Explain(in.Ignore), args, prepared)
	} else {
		var s driver.Stmt
		if s, err = c.innerConn.PrepareContext(ctx, text); err == nil {
			err = s.Close()
		}
	}
	switch {
	case err == nil:
		st.taken.Store(true)
	case isServerError(err, errAmbiguous, errOwnTable), !errors.As(err, new(*mysql.MySQLError)): // or no answer at all
		return err
	}
	return nil
}

// create makes the stage, with the target's column types, each of
// them nullable: triggers may mend a NULL. That of LOAD DATA has the target's
// defaults as well, and NULL in the key alone: a file may have too few fields,
// and SET reads what became of them. A user who may not read the target gets
// the types that the catalog tells. The key alone may get another name.
func (s *stageRun) create(ctx context.Context, columns []string, keyName string) error {
	target := catalog.Name{DB: s.in.Table.DB, Table: s.in.Table.Name}.Quoted()
	list := make([]string, len(columns))
	for i, col := range columns {
		list[i] = target + "." + catalog.Quote(col) + " " + keyName
	}
	load := s.in.Staging != nil && s.in.Staging.Load
	const engine = ") ENGINE=InnoDB ROW_FORMAT=DYNAMIC"
	begin := "CREATE TEMPORARY TABLE " + s.name + " (leafsql_n BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY"
	key, source := "", "(SELECT 1) leafsql_q LEFT JOIN "+target+" ON FALSE"
	if load {
		source = target
		if s.in.Staging.Key >= 0 {
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
		if err = s.exec(ctx, dropStage+s.name); err == nil {
			err = s.createAs(ctx, text)
		}
	}
	s.c.stageLeft = s.name
	return s.createError(err)
}

// createAs creates the table, without regard to sql_mode where that forbids the
// defaults that the target has, and to a binary log in statements, which
// forbids a CREATE inside a transaction.
func (s *stageRun) createAs(ctx context.Context, text string) error {
	err := s.start(ctx, text)
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

// createError is the refusal of a statement whose stage cannot be
// had. Nothing of it ran.
func (s *stageRun) createError(err error) error {
	var fix string
	switch {
	case isServerError(err, errDatabaseDenied):
		fix = "GRANT CREATE TEMPORARY TABLES ON " + catalog.Quote(s.in.Table.DB) + ".* to this user"
	case isServerError(err, errTableDenied, errColumnDenied) && s.in.Staging != nil && s.in.Staging.Load:
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

func (s *stageRun) refusal(reason, fix string) error {
	return &RefusedError{Table: s.t.name.String(), Reason: reason, Fix: fix}
}

// showsClock says whether a default of the copy, or a trigger, may tell the time,
// as the source does.
func (s *stageRun) showsClock() bool {
	return s.t.triggered || slices.ContainsFunc(s.in.Table.NowColumns, func(col string) bool {
		return !slices.ContainsFunc(s.in.Staging.Columns, func(c string) bool { return strings.EqualFold(c, col) })
	})
}

// clock makes the statements that a statement runs as say one time.
func (s *stageRun) clock(ctx context.Context) error {
	if s.c.settings.MariaDB {
		s.prefix = "SET STATEMENT timestamp = @leafsql_t FOR "
		s.note = ", @leafsql_t = UNIX_TIMESTAMP(NOW(6))"
		return nil
	}
	now, err := value(ctx, s.c.innerConn, "UNIX_TIMESTAMP(NOW(6))")
	s.hint = " /*+ SET_VAR(timestamp=" + now + ") */"
	return err
}

// fill runs the user's source.
func (s *stageRun) fill(ctx context.Context) (rows int64, err error) {
	args := s.args[:min(s.in.Staging.FillArgs, len(s.args))]
	res, err := s.c.execArgs(ctx, s.prefix+s.in.Staging.Fill(s.name, s.hint), args, s.prepared)
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

// number draws ids for the rows that lack a key. highest is the highest key
// that others bring: the ids are above it, and where none are drawn the counter
// is moved above it once the rows are there.
func (s *stageRun) number(ctx context.Context, rows int64) (b insert.Block, highest int64, err error) {
	b.N = int(rows)
	if rows > 0 && s.in.Staging.Key >= 0 {
		if b.N, highest, err = s.look(ctx); err != nil || b.N == 0 {
			return b, highest, err
		}
		if err = s.t.skip(ctx, s.c.innerConn, highest); err != nil {
			return b, 0, err
		}
	}
	if b.N > 0 {
		err = s.t.draw(ctx, s.c.innerConn, &b)
	}
	return b, 0, err
}

// look counts the rows that lack a key, and finds the highest key that the
// others bring.
func (s *stageRun) look(ctx context.Context) (lacking int, highest int64, err error) {
	rows, err := s.c.readAll(ctx, s.in.Staging.Look(s.name, s.t.highest), nil, false)
	if err != nil {
		return 0, 0, err
	}
	if len(rows.rows) != 1 {
		return 0, 0, io.ErrUnexpectedEOF
	}
	row := rows.rows[0]
	if lacking, err = strconv.Atoi(text(row[0])); err != nil {
		return 0, 0, err
	}
	highest, _ = strconv.ParseInt(text(row[1]), 10, 64) // NULL: none to follow
	return lacking, highest, nil
}

// named makes an error of the stage, which the application does not
// know, one of the target and its key.
func (s *stageRun) named(err error) error {
	var e *mysql.MySQLError
	if !errors.As(err, &e) || !strings.Contains(e.Message, "leafsql_") {
		return err
	}
	told := *e
	told.Message = strings.NewReplacer(stageTable, s.t.name.Table, insert.KeyColumn, s.t.column).Replace(e.Message)
	return &told
}

// copyError refuses an update list that names a column of the source, which is
// not there in the copy.
func (s *stageRun) copyError(err error) error {
	if s.in.Upsert && isServerError(err, errUnknownColumn) {
		return s.refusal("its update list names a column that the copy does not know ("+serverMessage(err)+")",
			"give the value a column of the insert, and use VALUES() in the list")
	}
	return err
}
