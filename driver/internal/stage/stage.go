// Package stage runs a statement whose rows only the server knows, such as INSERT … SELECT and
// LOAD DATA: its rows go through a temporary table, the stage, where those that lack a key
// get one.
//
//	run := stage.Run{Stage: &st, Session: s, Insert: in, Args: args}
//	err := run.Do(ctx) // then run.Result, run.Block and run.ID
//
// A run leaves the session as it found it (transaction.go). Package read decides which
// statements need a stage; package insert has the texts that go through one.
package stage

import (
	"context"
	"database/sql/driver"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/go-sql-driver/mysql"
	"github.com/samber/lo"

	"github.com/leafsql/leafsql/driver/internal/catalog"
	"github.com/leafsql/leafsql/driver/internal/insert"
	"github.com/leafsql/leafsql/driver/internal/session"
	"github.com/leafsql/leafsql/driver/internal/tables"
	"github.com/leafsql/leafsql/internal/quote"
	"github.com/leafsql/leafsql/internal/servererr"
)

// A Stage is what is kept of the runs on one connection.
type Stage struct {
	Server *Server

	runs int      // that began a transaction or a savepoint
	left []string // the stages of this connection, as SQL writes them, that are still there
}

// A Server is what the runs on all connections to one server share.
type Server struct {
	Catalog *catalog.Catalog

	replaced atomic.Int64 // when a connection was last closed for want of a right, in Unix nanoseconds
}

// A Run is one execution of a statement whose rows only the server knows, in
// three steps on the application's own connection:
//
//  1. fill    the user's source, unchanged, fills the stage, a temporary table
//  2. number  rows that lack a key are counted there, and get ids
//  3. copy    all are written to the target
//
// All of it is one transaction: the application's, from a savepoint on, or one of
// its own that ends with the copy.
type Run struct {
	*Stage
	Session   *session.Session
	Insert    *insert.Insert
	Args      []driver.NamedValue
	Prepared  bool         // the user prepared the statement
	FoundRows bool         // affected counts are of rows found
	Accepted  *atomic.Bool // of the plan: its copy ran, so that the server finds the names in it
	Unproven  bool         // the server has not shown that this account may write the rows, with their keys

	Result driver.Result
	Source driver.Result // of the step that filled the stage
	Block  insert.Block  // the ids it gave
	ID     int64         // LastInsertId

	t      *tables.Table
	name   string // the stage, as SQL writes it
	open   bool   // the transaction is, or the savepoint is made
	own    bool   // the transaction is this run's own
	note   string // assignments for the SET that opens it
	hint   string // behind each verb, on MySQL: makes all statements say one time
	prefix string // before each statement, on MariaDB: likewise

	rows    int64  // that the source had
	highest int64  // the key that the counter is to be above once the rows are there
	marked  bool   // the copy carried the marker
	setID   string // the assignment that makes LAST_INSERT_ID() what one statement leaves; "" where it is
}

// stageTable is the stage's name, in the target's database.
const stageTable = "leafsql_stage"

const dropStage = "DROP TEMPORARY TABLE IF EXISTS "

// Do runs the statement once.
func (s *Run) Do(ctx context.Context) error {
	s.t = s.Insert.Table.Ref.(*tables.Table)
	s.name = catalog.Name{DB: s.Insert.Table.DB, Table: stageTable}.Quoted()
	s.DropLeft(ctx, s.Session)
	for _, step := range []func(context.Context) error{s.clock, s.create, s.checkCopy, s.fill, s.number, s.store} {
		if err := step(ctx); err != nil {
			s.undo(ctx, err)
			return s.named(err)
		}
	}
	return s.end(ctx)
}

// checkCopy copies while there are no rows: once for a plan if only the server can resolve the names in the update list,
// and before ids are drawn for an account that may not be allowed to write them.
func (s *Run) checkCopy(ctx context.Context) error {
	if !s.Unproven && (!s.Insert.Staging.Named || s.Accepted.Load()) {
		return nil
	}
	err := s.copy(ctx, insert.Block{First: 1, N: 2})
	s.Accepted.Store(err == nil)
	if s.Unproven && servererr.Denied(err) && strings.Contains(servererr.Message(err), "'"+s.Insert.Table.Key+"'") {
		return s.Insert.KeyDenied(servererr.Message(err))
	}
	return err
}

// store writes the rows to the target, also where there are none: it may have an error
// for a select's none.
func (s *Run) store(ctx context.Context) error {
	s.Result = driver.RowsAffected(0)
	if s.rows == 0 && s.Insert.Staging.Load {
		return nil
	}
	if s.rows > 0 && s.Insert.Staging.ReadsID { // filling the stage set it to a row's number there
		if err := s.execText(ctx, "SET "+idBefore); err != nil {
			return err
		}
	}
	if err := s.copy(ctx, s.Block); err != nil {
		s.t.SkipAfter(ctx, s.highest, err)
		return err
	}
	in := *s.Insert
	in.Rows, in.Marker = int(s.rows), s.marked
	in.UpsertMarker = in.UpsertMarker && s.marked && s.rows == 1 // each row sets the marker anew
	affected, server := session.Counts(s.Result)
	s.ID, _ = in.KeyID(&s.Block, affected, server, s.FoundRows)
	if !s.marked && s.rows > 0 {
		s.setID = idBefore
		if late := in.IDAfter(&s.Block, affected, s.ID); in.SetIDAfter && late > 0 {
			s.setID = "last_insert_id = " + strconv.FormatInt(late, 10)
		}
	}
	return s.t.Skip(ctx, s.Session.Conn, s.highest, nil)
}

// copy writes the stage's rows to the target.
func (s *Run) copy(ctx context.Context, b insert.Block) (err error) {
	var text string
	text, s.marked = s.Insert.Staging.Copy(s.name, s.hint, b)
	args := session.Renumber(s.Args[min(s.Insert.Staging.FillArgs, len(s.Args)):])
	s.Result, err = s.Session.ExecArgs(ctx, s.prefix+text, args, s.Prepared)
	if s.Insert.Upsert && servererr.Is(err, servererr.UnknownColumn) {
		return s.Insert.Table.Refuse("its update list names a column of the source that leafsql does not find among the selected ones ("+servererr.Message(err)+")",
			"list the column as it is and not by *, with its table's name if tables are joined, and name one table's columns alone; or use VALUES(column of the insert)")
	}
	return err
}

func (s *Run) execText(ctx context.Context, text string) error {
	_, err := s.Session.Conn.ExecContext(ctx, text, nil)
	return err
}

// create makes the stage, with the target's column types, each of
// them nullable: triggers may mend a NULL. That of LOAD DATA has the target's
// defaults as well, and NULL in the key alone: a file may have too few fields,
// and SET reads what became of them.
func (s *Run) create(ctx context.Context) error {
	target := catalog.Name{DB: s.Insert.Table.DB, Table: s.Insert.Table.Name}.Quoted()
	list := lo.Map(s.Insert.Staging.Columns, func(col string, _ int) string { return target + "." + quote.Name(col) })
	key, source := "", "(SELECT 1) leafsql_q LEFT JOIN "+target+" ON FALSE"
	if s.Insert.Staging.Load {
		source = target
		if s.Insert.Staging.Key >= 0 {
			key = ", " + quote.Name(s.t.Key.Name) + " " + s.t.Key.Type + " NULL"
		}
	}
	text := "CREATE TEMPORARY TABLE " + s.name + " (leafsql_n BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY" + key +
		") ENGINE=InnoDB ROW_FORMAT=DYNAMIC SELECT " + strings.Join(list, ", ") + " FROM " + source + " LIMIT 0"
	err := s.withRights(ctx, func() error { return s.start(ctx, text) })
	if servererr.Is(err, servererr.InvalidDefault) { // of the target's columns, under this sql_mode
		// No SET STATEMENT: MariaDB's answer to one tells the inner driver that
		// sql_mode, by which it escapes arguments, is the one within.
		if err = s.execText(ctx, "SET @leafsql_m = @@sql_mode, sql_mode = ''"); err == nil {
			err = s.execText(ctx, text)
			if !s.Session.PutBack(ctx, "SET sql_mode = @leafsql_m") && err == nil {
				err = driver.ErrBadConn
			}
		}
	}
	if servererr.Is(err, servererr.TableExists) {
		if !slices.Contains(s.left, s.name) {
			return s.Insert.Table.Refuse("its rows go through a temporary table named "+stageTable+", and the session has another one of that name", "rename or drop that table")
		}
		if err = s.execText(ctx, dropStage+s.name); err == nil {
			err = s.execText(ctx, text)
		}
	}
	if !slices.Contains(s.left, s.name) { // also after an error: the answer may be lost
		s.left = append(s.left, s.name)
	}
	return s.createError(err)
}

// createError is the refusal of a statement whose stage cannot be
// had. Nothing of it ran.
func (s *Run) createError(err error) error {
	fix, counts := "", " to this user: it counts at once, but rights on *.* and roles only for new connections"
	switch {
	case servererr.Is(err, servererr.DatabaseDenied):
		fix = "GRANT CREATE TEMPORARY TABLES ON " + quote.Name(s.Insert.Table.DB) + ".*" + counts
	case servererr.Is(err, servererr.TableDenied, servererr.ColumnDenied):
		fix = "GRANT SELECT ON " + s.t.Name.Quoted() + counts
	case servererr.Is(err, servererr.XA):
		fix = "run it outside of the XA transaction, or SET xa_detach_on_prepare = OFF"
	case servererr.Is(err, servererr.GTIDCreate, servererr.GTIDCreateOld):
		fix = "use binlog_format=ROW"
	case servererr.Is(err, servererr.UnknownColumn) && strings.Contains(servererr.Message(err), "default value"): // of MySQL
		fix = "list the columns that the defaults of others are made of, too"
	case servererr.Is(err, servererr.CannotCreate, servererr.TooManyColumns, servererr.RowTooLarge, servererr.TooManyFields):
		fix = "write fewer columns in one statement"
	default:
		return err
	}
	return s.Insert.Table.Refuse("its rows go through a temporary table, which the server refuses ("+servererr.Message(err)+")", fix)
}

// clock makes the statements that a statement runs as say one time, if it asks for it.
func (s *Run) clock(ctx context.Context) error {
	switch {
	case !s.Insert.Staging.Clock:
		return nil
	case s.Session.Settings.MariaDB:
		s.prefix = "SET STATEMENT timestamp = @leafsql_t FOR "
		s.note = ", @leafsql_t = UNIX_TIMESTAMP(NOW(6))"
		return nil
	}
	now, err := session.Value(ctx, s.Session.Conn, "UNIX_TIMESTAMP(NOW(6))")
	s.hint = " /*+ SET_VAR(timestamp=" + now + ") */"
	return err
}

// fill runs the user's source.
func (s *Run) fill(ctx context.Context) (err error) {
	args := s.Args[:min(s.Insert.Staging.FillArgs, len(s.Args))]
	s.Source, err = s.Session.ExecArgs(ctx, s.prefix+s.Insert.Staging.Fill(s.name, s.hint), args, s.Prepared)
	if err == nil {
		s.rows, err = s.Source.RowsAffected()
	}
	return err
}

// number draws ids for the rows that lack a key, above the highest key that others
// bring. Where none lacks one the counter is moved above that once the rows are there.
func (s *Run) number(ctx context.Context) (err error) {
	s.Block.N = int(s.rows)
	if s.rows > 0 && s.Insert.Staging.Key >= 0 {
		if err = s.look(ctx); err == nil && s.Block.N > 0 {
			err = s.t.Skip(ctx, s.Session.Conn, s.highest, nil)
			s.highest = 0
		}
	}
	if err == nil && s.Block.N > 0 {
		err = s.t.Draw(ctx, s.Session.Conn, &s.Block)
	}
	return err
}

// look counts the rows that lack a key, and finds the highest key that the
// others bring.
func (s *Run) look(ctx context.Context) error {
	_, row, err := session.Row(ctx, s.Session.Conn, s.Insert.Staging.Look(s.name, s.t.Highest))
	if err != nil {
		return err
	}
	if len(row) == 0 {
		return io.ErrUnexpectedEOF
	}
	if s.Block.N, err = strconv.Atoi(row[0]); err != nil {
		return err
	}
	s.highest, _ = strconv.ParseInt(row[1], 10, 64) // NULL: none to follow
	given, _ := strconv.Atoi(row[2])
	if t := s.Insert.Table; s.Block.N+given > int(s.rows) && t.ZeroIn(t.ZeroKey == insert.BySession && row[3] != "0") == insert.Given {
		s.Block.KeepZero, s.Block.N = true, int(s.rows)-given
	}
	return nil
}

// named makes an error of the stage, which the application does not know, one of the
// target.
func (s *Run) named(err error) error {
	e, ok := err.(*mysql.MySQLError) // not one of leafsql's own account
	if !ok || !strings.Contains(e.Message, stageTable) {
		return err
	}
	told := *e
	told.Message = strings.ReplaceAll(e.Message, stageTable, s.t.Name.Table)
	return &told
}
