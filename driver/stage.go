package driver

import (
	"context"
	"database/sql/driver"
	"errors"
	"io"
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
// its own that ends with the copy.
type stageRun struct {
	*execution
	in     *insert.Insert
	t      *table
	name   string // the stage, as SQL writes it
	open   bool   // the transaction is, or the savepoint is made
	own    bool   // the transaction is this run's own
	note   string // assignments for the SET that opens it
	hint   string // behind each verb, on MySQL: makes all statements say one time
	prefix string // before each statement, on MariaDB: likewise
}

// stageTable is the stage's name, in the target's database.
const stageTable = "leafsql_stage"

const dropStage = "DROP TEMPORARY TABLE IF EXISTS "

// A stageResult is what a stageRun came to.
type stageResult struct {
	block  insert.Block // the ids it gave
	rows   int64        // that the source had
	marked bool         // the copy carried the marker
	id     int64        // LastInsertId
	late   int64        // what LAST_INSERT_ID() becomes where the copy did not carry it
}

// runStaged runs a staged statement, once more where its table has changed.
func (e *execution) runStaged(ctx context.Context) (ran stageResult, err error) {
	c, own := e.c, *e // only such statements are to allocate one
	defer func() { *e = own }()
	for tried := false; ; tried = true {
		in := &own.st.plan.Inserts[0]
		s := &stageRun{execution: &own, in: in, t: in.Table.Ref.(*table), name: catalog.Name{DB: in.Table.DB, Table: stageTable}.Quoted()}
		ran, err = s.run(ctx)
		c.after(own.st, err)
		if err == nil {
			collect(ctx, own.st.plan, []insert.Block{ran.block})
			return ran, nil
		}
		again := c.again(ctx, own.st, own.text, err)
		if tried || again == nil || again.way != staged {
			return ran, c.connector.counts.note(c.explain(ctx, own.st, own.text, []insert.Block{ran.block}, err))
		}
		own.st = again
	}
}

// run runs the statement once.
func (s *stageRun) run(ctx context.Context) (ran stageResult, err error) {
	in := s.in
	s.c.dropLeftStage(ctx)
	if in.Staging.Clock {
		err = s.clock(ctx)
	}
	if err == nil {
		err = s.create(ctx)
	}
	if err == nil && in.Staging.Named && !s.st.accepted.Load() {
		if err = s.copy(ctx, insert.Block{First: 1, N: 2}, &ran); err == nil {
			s.st.accepted.Store(true)
		}
	}
	if err == nil {
		ran.rows, err = s.fill(ctx)
	}
	highest := int64(0)
	if err == nil {
		ran.block, highest, err = s.number(ctx, ran.rows)
	}
	if err == nil && ran.rows > 0 && in.Staging.ReadsID { // filling the stage set it to a row's number there
		err = s.execText(ctx, "SET "+idBefore)
	}
	s.result = driver.RowsAffected(0)
	// Without a row as well: the target may have an error for a select's none.
	if err == nil && (ran.rows > 0 || !in.Staging.Load) {
		if err = s.copy(ctx, ran.block, &ran); err == nil {
			ran.id, ran.late = s.lastID(&ran)
			err = s.t.skip(ctx, s.c.innerConn, highest)
		}
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

// copy writes the stage's rows to the target. Before there are any it tells whether the
// server knows the names in the update list.
func (s *stageRun) copy(ctx context.Context, b insert.Block, ran *stageResult) error {
	var text string
	text, ran.marked = s.in.Staging.Copy(s.name, s.hint, b)
	args := renumber(s.args[min(s.in.Staging.FillArgs, len(s.args)):])
	var err error
	s.result, err = s.c.execArgs(ctx, s.prefix+text, args, s.stmt != nil)
	if s.in.Upsert && isServerError(err, errUnknownColumn) {
		return s.refusal("its update list names a column that only the source knows ("+serverMessage(err)+")",
			"select from one table, or from a derived one that has the column, or give the value a column of the insert")
	}
	return err
}

// lastID is the LastInsertId of what was copied, and what SQL's becomes where the
// copy did not carry it.
func (s *stageRun) lastID(ran *stageResult) (id, late int64) {
	in := *s.in
	in.Rows, in.Marker = int(ran.rows), ran.marked
	in.UpsertMarker = in.UpsertMarker && ran.marked && ran.rows == 1 // each row sets the marker anew
	affected, server := counts(s.result)
	id, _ = lastInsertID(&in, &ran.block, affected, server, s.c.connector.foundRows())
	return id, lateID(&in, &ran.block, affected, id)
}

func (s *stageRun) execText(ctx context.Context, text string) error {
	_, err := s.c.innerConn.ExecContext(ctx, text, nil)
	return err
}

// create makes the stage, with the target's column types, each of
// them nullable: triggers may mend a NULL. That of LOAD DATA has the target's
// defaults as well, and NULL in the key alone: a file may have too few fields,
// and SET reads what became of them.
func (s *stageRun) create(ctx context.Context) error {
	target := catalog.Name{DB: s.in.Table.DB, Table: s.in.Table.Name}.Quoted()
	list := make([]string, len(s.in.Staging.Columns))
	for i, col := range s.in.Staging.Columns {
		list[i] = target + "." + catalog.Quote(col)
	}
	key, source := "", "(SELECT 1) leafsql_q LEFT JOIN "+target+" ON FALSE"
	if s.in.Staging.Load {
		source = target
		if s.in.Staging.Key >= 0 {
			key = ", " + catalog.Quote(s.t.key.Name) + " " + s.t.key.Type + " NULL"
		}
	}
	text := "CREATE TEMPORARY TABLE " + s.name + " (leafsql_n BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY" + key +
		") ENGINE=InnoDB ROW_FORMAT=DYNAMIC SELECT " + strings.Join(list, ", ") + " FROM " + source + " LIMIT 0"
	err := s.c.withRights(ctx, func() error { return s.start(ctx, text) })
	if isServerError(err, errInvalidDefault) { // of the target's columns, under this sql_mode
		// No SET STATEMENT: MariaDB's answer to one tells the inner driver that
		// sql_mode, by which it escapes arguments, is the one within.
		if err = s.execText(ctx, "SET @leafsql_m = @@sql_mode, sql_mode = ''"); err == nil {
			err = s.execText(ctx, text)
			if !s.putBack(ctx, "SET sql_mode = @leafsql_m") && err == nil {
				err = driver.ErrBadConn
			}
		}
	}
	if isServerError(err, errTableExists) { // left by a run that was cut off
		if err = s.execText(ctx, dropStage+s.name); err == nil {
			err = s.execText(ctx, text)
		}
	}
	s.c.stageLeft = s.name
	return s.createError(err)
}

// createError is the refusal of a statement whose stage cannot be
// had. Nothing of it ran.
func (s *stageRun) createError(err error) error {
	fix, counts := "", " to this user: it counts at once, but rights on *.* and roles only for new connections"
	switch {
	case isServerError(err, errDatabaseDenied):
		fix = "GRANT CREATE TEMPORARY TABLES ON " + catalog.Quote(s.in.Table.DB) + ".*" + counts
	case isServerError(err, errTableDenied, errColumnDenied):
		fix = "GRANT SELECT ON " + s.t.name.Quoted() + counts
	case isServerError(err, errXA):
		fix = "run it outside of the XA transaction, or SET xa_detach_on_prepare = OFF"
	case isServerError(err, errGTIDCreate, errGTIDCreateOld):
		fix = "use binlog_format=ROW"
	case isServerError(err, errUnknownColumn) && strings.Contains(serverMessage(err), "default value"): // of MySQL
		fix = "list the columns that the defaults of others are made of, too"
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
	res, err := s.c.execArgs(ctx, s.prefix+s.in.Staging.Fill(s.name, s.hint), args, s.stmt != nil)
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
		if b.N, highest, err = s.look(ctx, b.N); err != nil || b.N == 0 {
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
func (s *stageRun) look(ctx context.Context, all int) (lacking int, highest int64, err error) {
	rows, err := s.c.readAll(ctx, s.in.Staging.Look(s.name, s.t.highest))
	if err != nil {
		return 0, 0, err
	}
	if len(rows.rows) != 1 {
		return 0, 0, io.ErrUnexpectedEOF
	}
	row := rows.rows[0]
	if lacking, err = strconv.Atoi(valueText(row[0])); err != nil {
		return 0, 0, err
	}
	if given, _ := strconv.Atoi(valueText(row[2])); lacking+given > all && s.in.Table.Zero != nil {
		s.in.Table.Zero()
	}
	highest, _ = strconv.ParseInt(valueText(row[1]), 10, 64) // NULL: none to follow
	return lacking, highest, nil
}

// named makes an error of the stage, which the application does not know, one of the
// target.
func (s *stageRun) named(err error) error {
	var e *mysql.MySQLError
	if !errors.As(err, &e) || !strings.Contains(e.Message, "leafsql_") {
		return err
	}
	told := *e
	told.Message = strings.ReplaceAll(e.Message, stageTable, s.t.name.Table)
	return &told
}
