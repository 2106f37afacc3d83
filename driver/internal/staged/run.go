// Package staged runs statements with rows that only the server has, such as INSERT … SELECT and LOAD
// DATA. Their rows are written to a temporary table, the stage, and rows without a key get one there. Then a
// second statement, the copy, writes them to the target, the table that the application's statement names. The
// source is the SELECT or the file with the rows. Package insert defines the session's id.
//
// When a statement is planned, a Judge decides whether it may run in several steps, and in which steps. An
// execution is a Run:
//
//	run := staged.Run{ConnState: &st, Session: s, Insert: in, Args: args}
//	err := run.Do(ctx) // then run.Result, run.Block and run.ID
//
// The files, each based on the files above it:
//
//	effects.go      what a piece of SQL reads and changes apart from its rows
//	programs.go     the same for stored programs and the programs that they call
//	refusals.go     the reasons to refuse a statement
//	judge.go        the decision whether a statement may run in several steps
//	steps.go        the SQL of these steps
//	run.go          the steps, and rights that are granted during the session
//	transaction.go  the transaction, and restoring the session afterwards
//
// Package read finds the parts of a statement and returns them as an insert.Staging.
//
// The design is in docs/design/staging.md.
package staged

import (
	"context"
	"database/sql/driver"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/samber/lo"

	"github.com/leafsql/leafsql/driver/internal/insert"
	"github.com/leafsql/leafsql/driver/internal/session"
	"github.com/leafsql/leafsql/internal/quote"
	"github.com/leafsql/leafsql/internal/servererr"
)

// A ConnState has the state that one connection keeps between runs. It is not safe for concurrent use.
type ConnState struct {
	Server *Server

	runs       int      // number of runs that began a transaction or a savepoint
	leftTables []string // names of this connection's stages that still exist, quoted as in SQL
}

// A Run is one execution of a statement with rows that only the server has, in three steps on the
// application's connection:
//
//  1. fill    the user's source, unchanged, fills the stage, a temporary table
//  2. number  rows without a key are counted there, and get ids
//  3. copy    all rows are written to the target
//
// The steps are one transaction: the application's, after a savepoint, or an internal one that ends
// with the copy. Do is called once for each Run.
type Run struct {
	*ConnState
	Session       *session.Session
	Insert        *insert.Insert
	Args          []driver.NamedValue
	Prepared      bool         // the user prepared the statement
	FoundRows     bool         // affected counts include unchanged rows, as with clientFoundRows
	CopySucceeded *atomic.Bool // set once a copy of the same plan has succeeded: the server can resolve the plan's names
	Unproven      bool         // the server has not confirmed that this account may write the rows with their keys

	Result driver.Result
	Source driver.Result // result of the step that filled the stage
	Block  insert.Block  // the ids of the rows
	ID     int64         // the statement's id, which replaces the id in Result

	name             string // the stage's name, quoted as in SQL
	inTransaction    bool   // the transaction is open, or the savepoint exists
	ownsTransaction  bool   // the transaction is internal
	startAssignments string // assignments for the SET that opens the transaction
	hint             string // for MySQL, after each verb: sets the same time for all statements
	prefix           string // for MariaDB, in front of each statement: sets the same time for all statements

	rows   int64  // number of rows of the source
	marked bool   // the copy contained the marker, which sets the session's id
	setID  string // assignment that sets the session's id to the value that it would have after the application's statement; "" if it is already set
}

// stageTable is the stage's name. The stage is in the target's database.
const stageTable = "leafsql_stage"

const dropStage = "DROP TEMPORARY TABLE IF EXISTS "

// Do executes the statement. The error is the server's, an *insert.Refusal, or an error of the Draw method of
// insert.Keys. After an error the statement is rolled back. If the connection failed during the commit, the
// rows may be stored nevertheless.
func (s *Run) Do(ctx context.Context) error {
	s.name = quote.Qualified(s.Insert.Table.Name.DB, stageTable)
	s.DropLeftTables(ctx, s.Session)
	for _, step := range []func(context.Context) error{s.freezeClock, s.createStage, s.checkCopy, s.fillStage, s.drawIDs, s.copyToTarget} {
		if err := step(ctx); err != nil {
			s.rollBack(ctx, err)
			return s.hideStageName(err)
		}
	}
	return s.finish(ctx)
}

// checkCopy copies the empty stage, to find out whether the copy will succeed. It runs once for a plan if only the server
// can resolve the names in the update list. It runs each time if the account may lack the right to write the ids,
// since ids must not be drawn in vain.
func (s *Run) checkCopy(ctx context.Context) error {
	if !s.Unproven && (!s.Insert.Staging.Needs.HasAny(insert.NeedTryNames) || s.CopySucceeded.Load()) {
		return nil
	}
	err := s.copy(ctx, insert.Block{First: 1, N: 2})
	s.CopySucceeded.Store(err == nil)
	if s.Unproven && servererr.Denied(err) && strings.Contains(servererr.Message(err), "'"+s.Insert.Table.Key+"'") {
		return s.Insert.RefuseKey(servererr.Message(err))
	}
	return err
}

// copyToTarget writes the rows to the target. It copies the rows of a query even if there are none, since
// the server may return an error for the empty copy.
func (s *Run) copyToTarget(ctx context.Context) error {
	s.Result = driver.RowsAffected(0)
	if s.rows == 0 && s.Insert.Staging.Source == insert.FromFile {
		return nil
	}
	if s.rows > 0 && s.Insert.Staging.Needs.HasAny(insert.NeedIDBefore) { // the session's id is the number of a row in the stage now
		if err := s.Session.ExecText(ctx, "SET "+insert.RestoreID); err != nil {
			return err
		}
	}
	if err := s.copy(ctx, s.Block); err != nil {
		s.Insert.Table.SkipAfter(ctx, s.Block.PendingSkip, err)
		return err
	}
	in := *s.Insert
	if in.Rows = int(s.rows); !s.marked {
		in.Way = insert.NoID
	}
	if in.Update >= insert.RowUpdate && (!s.marked || s.rows != 1) { // with several rows, the update list of a later row sets the session's id again
		in.Update = insert.NoUpdate
	}
	affected, server := session.ResultCounts(s.Result)
	s.ID, _ = in.ResultID(&s.Block, affected, server, s.FoundRows)
	if !s.marked && s.rows > 0 {
		s.setID = insert.RestoreID
		if late := in.SessionIDAfter(&s.Block, affected, s.ID); s.Insert.Way == insert.IDSetAfter && late > 0 {
			s.setID = insert.SetID(late)
		}
	}
	return s.Insert.Table.Skip(ctx, s.Session, s.Block.PendingSkip, nil)
}

// copy copies the stage's rows to the target.
func (s *Run) copy(ctx context.Context, b insert.Block) (err error) {
	var text string
	text, s.marked = CopyQuery(s.Insert, s.name, s.hint, b)
	args := session.Renumber(s.Args[min(s.Insert.Staging.FillArgs, len(s.Args)):])
	s.Result, err = s.Session.ExecArgs(ctx, s.prefix+text, args, s.Prepared)
	if s.Insert.Duplicates >= insert.Update && servererr.Is(err, servererr.UnknownColumn) {
		return unknownColumn.refuse(s.Insert.Table, "{message}", servererr.Message(err))
	}
	return err
}

// createStage creates the stage with the target's column types. The columns are nullable, since triggers may
// replace a NULL. For LOAD DATA only the key is made nullable, and the columns keep the target's defaults. A line
// of the file may have too few fields, and the SET of LOAD DATA then reads these defaults.
func (s *Run) createStage(ctx context.Context) error {
	t := s.Insert.Table
	target := t.Name.Quoted()
	list := lo.Map(s.Insert.Staging.Columns, func(col string, _ int) string { return target + "." + quote.Name(col) })
	key, source := "", "(SELECT 1) leafsql_q LEFT JOIN "+target+" ON FALSE"
	if s.Insert.Staging.Source == insert.FromFile {
		source = target
		if s.Insert.Staging.Key >= 0 {
			key = ", " + quote.Name(t.Key) + " " + t.KeyType + " NULL"
		}
	}
	text := "CREATE TEMPORARY TABLE " + s.name + " (leafsql_n BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY" + key +
		") ENGINE=InnoDB ROW_FORMAT=DYNAMIC SELECT " + strings.Join(list, ", ") + " FROM " + source + " LIMIT 0"
	err := s.retryWithRights(ctx, func() error { return s.start(ctx, text) })
	if servererr.Is(err, servererr.InvalidDefault) { // the target's columns have defaults that are invalid under this sql_mode
		// SET STATEMENT is not used: after it, MariaDB reports the temporary sql_mode to the inner
		// driver, which would escape arguments for that mode.
		if err = s.Session.ExecText(ctx, "SET @leafsql_m = @@sql_mode, sql_mode = ''"); err == nil {
			err = s.Session.ExecText(ctx, text)
			if !s.Session.Restore(ctx, "SET sql_mode = @leafsql_m") && err == nil {
				err = driver.ErrBadConn
			}
		}
	}
	if servererr.Is(err, servererr.TableExists) {
		if !slices.Contains(s.leftTables, s.name) {
			return nameTaken.refuse(t)
		}
		if err = s.Session.ExecText(ctx, dropStage+s.name); err == nil {
			err = s.Session.ExecText(ctx, text)
		}
	}
	if !slices.Contains(s.leftTables, s.name) { // also after an error, because the stage may exist if the response was lost
		s.leftTables = append(s.leftTables, s.name)
	}
	return explainCreateError(t, err)
}

// freezeClock sets NOW() to one value for all steps, if the source reads NOW().
func (s *Run) freezeClock(ctx context.Context) error {
	switch {
	case !s.Insert.Staging.Needs.HasAny(insert.NeedOneTime):
		return nil
	case s.Session.Settings.MariaDB:
		s.prefix = "SET STATEMENT timestamp = @leafsql_t FOR "
		s.startAssignments = ", @leafsql_t = UNIX_TIMESTAMP(NOW(6))"
		return nil
	}
	now, err := session.QueryValue(ctx, s.Session.Conn, "UNIX_TIMESTAMP(NOW(6))")
	s.hint = " /*+ SET_VAR(timestamp=" + now + ") */"
	return err
}

// fillStage runs the user's source.
func (s *Run) fillStage(ctx context.Context) (err error) {
	args := s.Args[:min(s.Insert.Staging.FillArgs, len(s.Args))]
	s.Source, err = s.Session.ExecArgs(ctx, s.prefix+FillQuery(s.Insert.Staging, s.name, s.hint), args, s.Prepared)
	if err == nil {
		s.rows, err = s.Source.RowsAffected()
	}
	return err
}

// drawIDs draws ids for the rows without a key, above the highest key of the other rows. If all rows
// have keys, the counter's next id is raised above the highest key, but only after the rows are stored. Skip, which
// compares the counter with the table's keys, has to run before the copy: afterwards, it would find the new keys.
func (s *Run) drawIDs(ctx context.Context) (err error) {
	s.Block.N = int(s.rows)
	if s.rows > 0 && s.Insert.Staging.Key >= 0 {
		if err = s.countKeys(ctx); err == nil && s.Block.N > 0 {
			err = s.Insert.Table.Skip(ctx, s.Session, s.Block.PendingSkip, nil)
			s.Block.PendingSkip = 0
		} else if err == nil {
			err = s.Insert.Table.Skip(ctx, s.Session, s.Block.PendingSkip, &s.Block)
		}
	}
	if err == nil && s.Block.N >= manyRows && s.Block.N == int(s.rows) {
		err = s.checkNumbers(ctx)
	}
	if err == nil && s.Block.N > 0 {
		err = s.Insert.Table.Draw(ctx, s.Session, &s.Block)
	}
	return err
}

// manyRows is the number of rows from which on a window function costs more than the query for the last row's number.
const manyRows = 1000

// checkNumbers sets Block.Numbered if the last row's number is the number of rows. The numbers are different integers
// above 0, so they have no gaps then. They do, for example, if auto_increment_increment is above 1.
func (s *Run) checkNumbers(ctx context.Context) error {
	_, row, err := session.QueryRow(ctx, s.Session.Conn, LastQuery(s.name))
	s.Block.Numbered = len(row) > 0 && row[0] == strconv.FormatInt(s.rows, 10)
	return err
}

// countKeys counts the rows without a key, and finds the highest key of the other rows.
func (s *Run) countKeys(ctx context.Context) error {
	_, row, err := session.QueryRow(ctx, s.Session.Conn, CountQuery(s.Insert, s.name, s.Insert.Table.Highest))
	if err != nil {
		return err
	}
	if len(row) == 0 {
		return io.ErrUnexpectedEOF
	}
	if s.Block.N, err = strconv.Atoi(row[0]); err != nil {
		return err
	}
	s.Block.PendingSkip, _ = strconv.ParseInt(row[1], 10, 64) // 0 for NULL: there is no key above the counter
	given, _ := strconv.Atoi(row[2])
	if t := s.Insert.Table; s.Block.N+given > int(s.rows) && t.ZeroMeaningIn(t.ZeroKey == insert.KeyBySession && row[3] != "0") == insert.KeyGiven {
		s.Block.KeepZero, s.Block.N = true, int(s.rows)-given
	}
	return nil
}

// hideStageName replaces the stage's name in an error by the target's name, since the application does not know
// the stage.
func (s *Run) hideStageName(err error) error {
	e, ok := err.(*mysql.MySQLError) // an error from a connection of leafsql's account has another type
	if !ok || !strings.Contains(e.Message, stageTable) {
		return err
	}
	renamed := *e
	renamed.Message = strings.ReplaceAll(e.Message, stageTable, s.Insert.Table.Name.Table)
	return &renamed
}

// replaceInterval is the minimum time between two connections that are closed because they lack a right.
const replaceInterval = time.Minute

// retryWithRights runs call. If a right is missing, it runs USE and then call again, because the right may have
// been granted during the session: the server reads a session's rights on a database at the login and at each USE.
// A connection that still lacks the right is closed when it returns to the pool, since the server reads rights on *.*
// and roles only at the login.
func (s *Run) retryWithRights(ctx context.Context, call func() error) error {
	err := call()
	if !servererr.Denied(err) {
		return err
	}
	if s.Session.DB != "" && !s.Session.DBUnknown {
		if s.Session.ExecText(ctx, "USE "+quote.Name(s.Session.DB)) != nil {
			return err
		}
		err = call()
	}
	now, last := time.Now().UnixNano(), s.Server.lastReplaced.Load()
	if servererr.Denied(err) && now-last >= int64(replaceInterval) && s.Server.lastReplaced.CompareAndSwap(last, now) {
		s.Session.Broken = true
	}
	return err
}
