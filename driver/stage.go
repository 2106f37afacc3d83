package driver

import (
	"context"
	"database/sql/driver"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/leafsql/leafsql/driver/internal/catalog"
	"github.com/leafsql/leafsql/driver/internal/insert"
)

// A staging runs one statement whose rows or keys only the server knows, in
// three steps on the application's own connection:
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
	prepared bool // the user's statement was prepared
	own      bool // the transaction is this run's own
	hint     string
	prefix   string
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

// stage runs a staged statement.
func (c *conn) stage(ctx context.Context, in *insert.Insert, args []driver.NamedValue, prepared bool, copy copier) (ran staged, err error) {
	s := &staging{
		c: c, in: in, t: in.Table.Ref.(*table), name: catalog.Name{DB: in.Table.DB, Table: stageTable}.Quoted(),
		args: args, prepared: prepared,
	}
	c.dropLeftStage(ctx)
	if err = s.begin(ctx); err != nil {
		return staged{}, err
	}
	if err = s.create(ctx); err == nil {
		ran.rows, err = s.fill(ctx)
	}
	if err == nil {
		ran.block, err = s.number(ctx, ran.rows)
	}
	if err == nil { // without a row as well: the target may have an error for it, and RETURNING its columns
		var text string
		text, ran.marked = in.Stage.Copy(s.name, s.hint, ran.block)
		err = s.copyError(copy(ctx, s.prefix+text, renumber(args[min(in.Stage.FillArgs, len(args)):])))
	}
	if err != nil {
		s.undo(ctx)
		return staged{}, err
	}
	return ran, s.end(ctx, ran.marked || ran.rows == 0)
}

func (s *staging) exec(ctx context.Context, text string) error {
	_, err := s.c.innerConn.ExecContext(ctx, text, nil)
	return err
}

// begin asks the server whether a transaction is open, or autocommit off, and
// opens one if not. A savepoint outside of a transaction is not kept. Neither
// COMMIT nor START TRANSACTION would do: completion_type and LOCK TABLES give
// them other meanings.
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
		s.undo(ctx)
	}
	return err
}

// create makes the temporary table, with the target's column types, each of
// them nullable: triggers may mend a NULL. A user who may not read the target
// gets it from the types that the catalog tells.
func (s *staging) create(ctx context.Context) error {
	if err := s.clock(ctx); err != nil {
		return err
	}
	target := catalog.Name{DB: s.in.Table.DB, Table: s.in.Table.Name}.Quoted()
	columns := make([]string, len(s.in.Stage.Columns))
	for i, col := range s.in.Stage.Columns {
		columns[i] = target + "." + catalog.Quote(col)
	}
	const (
		number = " (leafsql_n BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY"
		engine = ") ENGINE=InnoDB ROW_FORMAT=DYNAMIC"
	)
	begin := "CREATE TEMPORARY TABLE " + s.name + number
	text := begin + engine + " SELECT " + strings.Join(columns, ", ") + " FROM (SELECT 1) leafsql_q LEFT JOIN " + target + " ON FALSE LIMIT 0"
	err := s.createAs(ctx, text)
	if isServerError(err, errTableDenied, errColumnDenied, errUnknownColumn, errNotLocked) {
		types, defErr := s.t.c.catalog.Definitions(ctx, s.t.name, s.in.Stage.Columns)
		if defErr != nil {
			return err
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

// createAs creates the table without regard to sql_mode, which may forbid the
// defaults that the target has, and to a binary log in statements, which
// forbids a CREATE inside a transaction.
func (s *staging) createAs(ctx context.Context, text string) error {
	if s.c.settings.MariaDB {
		return s.exec(ctx, "SET STATEMENT sql_mode = '' FOR "+text)
	}
	err := s.exec(ctx, text)
	if isServerError(err, errInvalidDefault) {
		if err = s.exec(ctx, "SET @leafsql_m = @@sql_mode, sql_mode = ''"); err == nil {
			err = s.exec(ctx, text)
			if back := s.c.always(ctx, "SET sql_mode = @leafsql_m"); err == nil {
				err = back
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
	case isServerError(err, errXA):
		fix = "run it outside of the XA transaction, or SET xa_detach_on_prepare = OFF"
	case isServerError(err, errGTIDCreate, errGTIDCreateOld):
		fix = "run it outside of the transaction, or use binlog_format=ROW"
	case isServerError(err, errReadOnlyTransaction):
		fix = "run it in a transaction that may write"
	case isServerError(err, errCannotCreate, errTooManyColumns, errRowTooLarge, errTooManyFields):
		fix = "write fewer columns in one statement"
	default:
		return err
	}
	return s.refusal("its rows go through a temporary table, which the server refuses ("+serverMessage(err)+")", fix)
}

func (s *staging) refusal(reason, fix string) error {
	return &RefusedError{Table: s.t.name.String(), Reason: reason, Way: fix}
}

// clock makes the source and the copy say the same time, where both do: the
// source by a call, the copy by a column's default.
func (s *staging) clock(ctx context.Context) error {
	byDefault := slices.ContainsFunc(s.in.Table.NowColumns, func(col string) bool {
		return !slices.ContainsFunc(s.in.Stage.Columns, func(c string) bool { return strings.EqualFold(c, col) })
	})
	if !s.in.Stage.Clock || !byDefault || s.in.Stage.Prefixed() {
		return nil
	}
	if s.c.settings.MariaDB {
		s.prefix = "SET STATEMENT timestamp = @leafsql_t FOR "
		return s.exec(ctx, "SET @leafsql_t = UNIX_TIMESTAMP(NOW(6))")
	}
	now, err := scalar(ctx, s.c.innerConn, "SELECT UNIX_TIMESTAMP(NOW(6))")
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
// is the statement's error.
func (s *staging) end(ctx context.Context, keepID bool) error {
	set := "last_insert_id = @leafsql_l"
	if s.own {
		if keepID {
			set = "autocommit = 1"
		} else {
			set = "autocommit = 1, " + set
		}
	} else if keepID {
		return nil // the temporary table stays: dropping it would change what ROW_COUNT() says
	}
	if err := s.exec(ctx, "SET "+set); err != nil {
		s.undo(ctx)
		return err
	}
	if s.own {
		s.c.dropLeftStage(ctx)
	}
	return nil
}

// undo leaves the session as it was before the statement, and nothing of it
// stored. A connection on which that fails is not used again.
func (s *staging) undo(ctx context.Context) {
	back := []string{"ROLLBACK TO SAVEPOINT leafsql", "SET last_insert_id = @leafsql_l"}
	if s.own {
		back = []string{"ROLLBACK", "SET autocommit = 1, last_insert_id = @leafsql_l"}
	}
	for _, text := range back {
		// After a deadlock the server has rolled everything back already.
		if err := s.c.always(ctx, text); err != nil && !isServerError(err, errNoSavepoint) {
			s.c.broken = true
			return
		}
	}
	if s.own {
		s.c.dropLeftStage(ctx)
	}
}

// undoTimeout bounds each statement that puts a session back.
const undoTimeout = 5 * time.Second

// always runs a statement whatever became of the caller's context, again where
// it is killed.
func (c *conn) always(ctx context.Context, text string) (err error) {
	for range 3 {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoTimeout)
		_, err = c.innerConn.ExecContext(ctx, text, nil)
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

// runStaged runs a staged statement, once more where its table has changed.
func (c *conn) runStaged(ctx context.Context, st *statement, text string, args []driver.NamedValue, prepared bool, copy copier) (ran staged, err error) {
	ran, err = c.stage(ctx, st.staged(), args, prepared, copy)
	c.after(st, err)
	if again := c.again(ctx, st, text, err); again != nil && again.staged() != nil {
		st = again
		ran, err = c.stage(ctx, st.staged(), args, prepared, copy)
		c.after(st, err)
	}
	if err != nil {
		return ran, c.connector.counts.note(err)
	}
	collect(ctx, st.plan, []insert.Block{ran.block})
	return ran, nil
}

// execStaged executes a staged statement.
func (c *conn) execStaged(ctx context.Context, st *statement, text string, args []driver.NamedValue, prepared bool) (driver.Result, error) {
	var res driver.Result
	ran, err := c.runStaged(ctx, st, text, args, prepared, func(ctx context.Context, text string, args []driver.NamedValue) (err error) {
		res, err = c.execArgs(ctx, text, args, prepared)
		return err
	})
	if err != nil {
		return nil, err
	}
	affected, server := counts(res)
	in := *st.staged()
	in.Rows, in.Marker = int(ran.rows), ran.marked
	if in.Upsert && ran.rows > 1 {
		in.UpsertMarker = false // each row sets the marker anew
	}
	id, _ := lastInsertID(&in, ran.block, affected, server, c.connector.foundRows())
	return &result{Result: res, id: id}, nil
}

// queryStaged is execStaged for a statement that answers with rows. They are
// read before the transaction ends.
func (c *conn) queryStaged(ctx context.Context, st *statement, text string, args []driver.NamedValue, prepared bool) (driver.Rows, error) {
	var rows *readRows
	_, err := c.runStaged(ctx, st, text, args, prepared, func(ctx context.Context, text string, args []driver.NamedValue) (err error) {
		rows, err = c.readAll(ctx, text, args, prepared)
		return err
	})
	if err != nil {
		return nil, err
	}
	return rows, nil
}

// readAll runs a query and reads all its rows.
func (c *conn) readAll(ctx context.Context, text string, args []driver.NamedValue, prepared bool) (*readRows, error) {
	query := func() (driver.Rows, error) { return c.innerConn.QueryContext(ctx, text, args) }
	if prepared || len(args) > 0 && !c.connector.interpolates() {
		s, err := c.innerConn.PrepareContext(ctx, text)
		if err != nil {
			return nil, err
		}
		defer s.Close()
		query = func() (driver.Rows, error) { return queryStmt(ctx, s, args) }
	}
	rows, err := query()
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	return read(rows)
}

// read reads all rows.
func read(rows driver.Rows) (*readRows, error) {
	r := &readRows{columns: rows.Columns()}
	r.describe(rows)
	for {
		row := make([]driver.Value, len(r.columns))
		switch err := rows.Next(row); err {
		case nil:
		case io.EOF:
			return r, nil
		default:
			return nil, err
		}
		for i, v := range row {
			if b, ok := v.([]byte); ok {
				row[i] = slices.Clone(b)
			}
		}
		r.rows = append(r.rows, row)
	}
}
