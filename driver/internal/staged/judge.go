package staged

import (
	"cmp"
	"slices"
	"strings"

	"github.com/leafsql/leafsql/driver/internal/insert"
	"github.com/leafsql/leafsql/internal/versions"
)

// A Judge decides, while one query is read, which of its statements may run in several steps (staged). The server would
// run such a statement in one step. The statement and the programs that it calls must give the same result in several
// steps. A Judge implements read.Stager. It is not safe for concurrent use.
type Judge struct {
	Settings insert.Settings

	// ProgramEffects returns the effects of the stored routines in calls and of the views in views, and of all
	// programs that they call. Names that are not views have no effects. Unqualified names are in db, or in
	// the database in use if db is "". If ProgramEffects is nil, stored programs have no effects.
	ProgramEffects func(db string, calls, views []insert.TableName) (insert.Effects, error)

	UsedPrograms bool // ProgramEffects was called: its result may change unnoticed
}

// programEffects returns the effects of the code that a piece of SQL runs indirectly: stored functions, and
// views with their functions.
func (j *Judge) programEffects(db string, e insert.Effects) (insert.Effects, error) {
	if len(e.Calls) == 0 && len(e.Tables) == 0 || j.ProgramEffects == nil {
		return insert.Effects{}, nil
	}
	j.UsedPrograms = true
	return j.ProgramEffects(db, e.Calls, e.Tables)
}

// ReadsID reports whether a stored function or a view that text may name reads the session's id. An
// error is a *catalog.Failure.
func (j *Judge) ReadsID(db, text string) (bool, error) {
	run, err := j.programEffects(db, findEffects(j.Settings.Scanner(text)))
	return run.Kinds.HasAny(insert.ReadsID | insert.Hidden), err
}

// Stage adds the steps that a statement needs, or returns its *insert.Refusal. Any other error is a
// *catalog.Failure.
func (j *Judge) Stage(in *insert.Insert, db, source string) error {
	t, s := in.Table, in.Staging
	switch {
	case j.Settings.TiDB:
		return notStaged.refuse(t, "{server}", "TiDB")
	case j.Settings.Vitess:
		return notStaged.refuse(t, "{server}", "Vitess")
	case in.Returning:
		return returningRefused.refuse(t)
	case !versions.HasWindowFunctions(j.Settings.MariaDB, j.Settings.Version):
		return serverTooOld.refuse(t, "{server}", versions.Format(j.Settings.MariaDB, j.Settings.Version))
	}
	if err := CheckNulledKeys(t, j.Settings, s.Source); err != nil {
		return err
	}
	switch s.Clash {
	case insert.ClashJoinCondition:
		return joinConditionRefused.refuse(t)
	case insert.ClashSameName:
		return sameNameRefused.refuse(t)
	}
	if err := j.checkEffects(t, s, db, source); err != nil {
		return err
	}
	if in.Way = t.IDWay; in.Way == insert.IDInText && s.Needs.HasAny(insert.NeedIDBefore) {
		in.Way = insert.IDSetAfter
	}
	return nil
}

// CheckNulledKeys returns an *insert.Refusal for a statement with rows from a source if the bug MDEV-36026 may
// replace their keys by NULL. This is possible if the server has the bug, and the table has a trigger that runs before a
// row is stored, or may have such a trigger that this user cannot see. The bug does not affect AUTO_INCREMENT keys of an
// INSERT … SELECT, or a LOAD DATA that is not staged.
func CheckNulledKeys(t *insert.Table, settings insert.Settings, source insert.Source) error {
	fixed, has := versions.HasNullColumnsBug(settings.MariaDB, settings.Version)
	server := versions.Format(settings.MariaDB, settings.Version)
	switch {
	case !has || t.AutoIncrement && source == insert.FromQuery:
	case t.RowTriggers == insert.SomeTriggers:
		return keysNulled.refuse(t, "{server}", server, "{fixed}", fixed)
	case t.RowTriggers == insert.HiddenTriggers:
		return keysMayBeNulled.refuse(t, "{server}", server, "{fixed}", fixed, "{table}", t.Name.Quoted())
	}
	return nil
}

// checkEffects examines the effects and dependencies of the source, and of the code that runs with each row.
// In a staged statement the source runs to its end before the first row is stored. If this could change a result,
// checkEffects returns a refusal. For called programs it refuses more statements than necessary. It does not refuse calls
// in triggers, although their results may change; this is documented.
func (j *Judge) checkEffects(t *insert.Table, s *insert.Staging, db, text string) error {
	source, tail := findEffects(j.Settings.Scanner(text)), findEffects(j.Settings.Scanner(s.Tail))
	called, err := j.programEffects(db, source)
	if err != nil {
		return err
	}
	byRow, err := j.programEffects(db, tail)
	if err != nil {
		return err
	}
	// The time can be set if nothing such as SET STATEMENT … FOR precedes the verb, and no hint follows
	// it.
	settable := s.Source == insert.FromQuery && len(s.Head[0]) <= len("REPLACE") && !strings.Contains(s.Head[1], "/*+")
	if settable && (source.Kinds.HasAny(insert.ReadsClock) || len(source.Calls) > 0) {
		s.Needs |= insert.NeedOneTime
	}
	if (tail.Kinds | byRow.Kinds | t.Triggers.Kinds).HasAny(insert.ReadsID) || byRow.Kinds.HasAny(insert.Hidden) {
		s.Needs |= insert.NeedIDBefore
	}
	counts := cmp.Or(source.PreviousCall, tail.PreviousCall, called.PreviousCall+byRow.PreviousCall)
	unseen := (called.Kinds | byRow.Kinds).HasAny(insert.Hidden)
	byRow.Add(t.Triggers)
	byRow.Add(tail)
	shared := called
	shared.Kinds |= source.Kinds & insert.Assigns
	shared.Vars = slices.Concat(called.Vars, source.Vars)
	switch name := shared.FindConflict(&byRow); {
	case source.Kinds.HasAny(insert.SetsID):
		return setsIDRefused.refuse(t, "{part}", "its source")
	case unseen:
		return hiddenFunction.refuse(t)
	case called.Kinds.HasAny(insert.SetsID):
		return setsIDRefused.refuse(t, "{part}", "a stored function that its source calls")
	case called.NamesTable(t.Name.Table):
		return functionUsesTable.refuse(t)
	case name != "":
		return orderMatters.refuse(t, "{name}", name)
	case counts != "":
		return countsPrevious.refuse(t, "{call}", counts)
	}
	return nil
}
