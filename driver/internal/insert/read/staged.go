package read

import (
	"cmp"
	"slices"
	"strings"

	"github.com/leafsql/leafsql/driver/internal/insert"
	"github.com/leafsql/leafsql/internal/quote"
	"github.com/leafsql/leafsql/internal/versions"
)

// Statements whose rows only the server knows: what their steps would change of what they say.

// finishStaged notes a statement whose rows are staged.
func (w *insertReader) finishStaged() error {
	if w.Returning {
		return w.Table.Refuse("RETURNING beside rows that only the server knows", "read the rows and insert them with VALUES, or SELECT them afterwards")
	}
	if !versions.NumbersRows(w.settings.MariaDB, w.settings.Version) {
		return w.Table.Refuse("a statement whose rows only the server knows needs MySQL 8.0 or MariaDB 10.2, and this is "+versions.Name(w.settings.MariaDB, w.settings.Version),
			"read the rows and insert them with VALUES")
	}
	if err := Nulled(w.Table, w.settings, w.loaded != nil); err != nil {
		return err
	}
	s := &insert.Staging{Table: w.Table, FillArgs: w.sourceInput, Load: w.loaded != nil, Columns: w.loaded, Upsert: w.Upsert, Named: w.named}
	if !s.Load {
		s.Columns = w.columnNames()
	}
	if s.Upsert {
		if err := w.nameSource(s); err != nil {
			return err
		}
	}
	s.Key, w.Columns = find(s.Columns, w.Table.Key), s.Columns
	verb, into, target := w.text[w.head.from:w.verbEnd], w.text[w.verbEnd:w.head.to], w.text[w.head.to:w.targetEnd]
	s.FillText = [3]string{verb, into, " (" + quote.Names(s.Columns) + ") " + w.text[w.source.from:w.source.to]}
	if s.Load {
		s.FillText = [3]string{verb, into, w.edited(w.source.from, w.source.to, w.Edits[w.firstEdit:w.tailEdit])}
		verb, into = "INSERT", " INTO "
		switch {
		case w.Replace:
			verb = "REPLACE"
		case w.Ignore:
			into = " IGNORE INTO "
		}
	}
	s.CopyHead = [2]string{verb, into + target}
	if w.prevEnd > w.source.to {
		s.Tail = " " + strings.TrimLeft(w.text[w.source.to:w.prevEnd], " ")
		s.MarkedTail = " " + strings.TrimLeft(w.edited(w.source.to, w.prevEnd, w.Edits[w.tailEdit:]), " ")
	}
	if err := w.check(s); err != nil {
		return err
	}
	s.Marker = w.Table.Marker && !s.ReadsID
	// It can be told its time if nothing such as SET STATEMENT … FOR stands before its verb, and no hint behind that.
	s.Clock = s.Clock && !s.Load && len(s.CopyHead[0]) <= len("REPLACE") && !strings.Contains(s.CopyHead[1], "/*+")
	w.forget() // the rows go another way than by edits
	w.Marker, w.SetIDAfter, w.Staging = s.Marker, w.Table.Marker && !s.Marker, s
	w.Inserts = append(w.Inserts, w.Insert)
	return nil
}

// Nulled is why a statement whose rows only the server knows, a LOAD DATA or another one, is refused on a server with the bug
// MDEV-36026, and nil where it is not. The bug spares AUTO_INCREMENT keys, and a LOAD DATA that the server runs itself. Where a
// trigger may be that this user does not see, the statement is refused too.
func Nulled(t *insert.Table, settings insert.Settings, load bool) error {
	mended, has := versions.NullsColumns(settings.MariaDB, settings.Version)
	if !has || t.AutoIncrement && !load || !t.TriggersBefore && !t.TriggersHidden {
		return nil
	}
	bug := versions.Name(settings.MariaDB, settings.Version) + " takes keys that are selected for NULL where a table has a trigger BEFORE INSERT or UPDATE (MDEV-36026)"
	const way = ", or read the rows and insert them with VALUES"
	if t.TriggersBefore {
		return t.Refuse(bug, "upgrade the server to "+mended+way)
	}
	return t.Refuse(bug+", and this user may not see this one's triggers",
		"GRANT TRIGGER ON "+quote.In(t.DB, t.Name)+" to this user itself, since a role's rights are not shown, upgrade the server to "+mended+way)
}

// edited is a piece of the text with edits of fixed texts.
func (w *insertReader) edited(from, to int, edits []insert.Edit) string {
	var b strings.Builder
	for _, e := range edits {
		b.WriteString(w.text[from:e.Pos])
		b.WriteString(w.Texts[e.Ref])
		from = int(e.End)
	}
	b.WriteString(w.text[from:to])
	return b.String()
}

// check looks at what the source does and depends on, and at what runs with each row.
// The source runs to its end before the first row is stored: where one could tell, the
// statement is refused. Of what it calls that is judged coarsely. Triggers alone, which
// are not refused for what they call, may tell: that is documented.
func (w *insertReader) check(s *insert.Staging) error {
	var source, tail effects
	source.scan(scanner(w.text[w.source.from:w.source.to], w.settings))
	tail.scan(scanner(s.Tail, w.settings))
	called, err := w.programs(source.Effects)
	if err != nil {
		return err
	}
	byRow, err := w.programs(tail.Effects)
	if err != nil {
		return err
	}
	s.Clock = source.Clock || len(source.Calls) > 0
	s.ReadsID = tail.ReadsID || byRow.ReadsID || byRow.Hidden || w.Table.ReadsID
	hidden, before := called.Hidden || byRow.Hidden, called.Before+byRow.Before
	byRow.Add(w.Table.Triggers)
	byRow.Add(tail.Effects)
	shared := called
	shared.Assigns, shared.Vars = called.Assigns || source.Assigns, slices.Concat(called.Vars, source.Vars)
	const early = ", and the source runs to its end before the first row is stored"
	const instead = "insert the rows with VALUES"
	switch {
	case source.SetsID:
		return w.setsIDApart("its source")
	case hidden:
		return w.Table.Refuse("it calls a stored function whose text this user may not see, and runs as several statements, which the function could notice",
			"GRANT SHOW_ROUTINE (on MariaDB SELECT ON mysql.proc) to this user, or "+instead)
	case called.SetsID:
		return w.setsIDApart("a stored function that its source calls")
	case called.Names(w.Table.Name):
		return w.Table.Refuse("a stored function that its source calls uses the table"+early, instead)
	}
	if name := shared.Disturbs(&byRow); name != "" {
		return w.Table.Refuse("its source, or a function that it calls, and what runs with each row use "+name+early, instead)
	}
	if call := cmp.Or(source.Before, tail.Before, before); call != "" {
		return w.Table.Refuse(call+" would tell of leafsql's own statements, since this one runs as several", "put it into a user variable first")
	}
	return nil
}

// setsIDApart refuses LAST_INSERT_ID(…) in what runs as a statement of its own.
func (w *insertReader) setsIDApart(where string) error {
	return w.Table.Refuse(where+" calls LAST_INSERT_ID(…), and is evaluated by a statement of its own", "SELECT LAST_INSERT_ID(…) before, or give the value without it")
}
