package tables

import (
	"cmp"

	"github.com/leafsql/leafsql/driver/internal/catalog"
	"github.com/leafsql/leafsql/driver/internal/counters"
	"github.com/leafsql/leafsql/driver/internal/insert"
	"github.com/leafsql/leafsql/driver/internal/rules"
)

// describeTable returns the data that plans need about a table. It returns nil if the rule
// may name many tables and does not apply to this table.
func (set *Set) describeTable(rule rules.Rule, name catalog.Name, seen *catalog.Table) (*insert.Table, error) {
	f, err := set.Config.Fit(rule, name, seen)
	if f == nil || err != nil {
		return nil, err
	}
	key := f.Key
	t, err := set.NewTable(rule, name, f)
	if err != nil {
		return nil, err
	}
	if c := t.Counter(); c != nil {
		c.AddDatabase(set.Config.Server, name.DB)
		for _, r := range set.rules { // other rules with the tag may name tables in other databases
			if !r.Exclude && rules.TagOf(r, c.Name) == c.Name {
				c.AddDatabase(set.Config.Server, cmp.Or(r.Database, set.DefaultDB))
			}
		}
	}
	desc := &insert.Table{
		Keys: t, Name: name,
		Key: key.Name, KeyType: key.Type, Highest: f.Highest,
		IntegerKey: f.Integer, UUID: f.UUIDs, Unsigned: key.IsUnsigned(),
		ZeroKey:        map[string]insert.KeyMeaning{"fill": insert.KeyWanted, "keep": insert.KeyGiven}[set.Config.Zero], // else KeyBySession
		Floors:         t.FollowsKeys(),
		HasOtherUnique: !key.AutoIncrement && seen.HasOtherUnique(key.Name),

		AutoIncrement: key.AutoIncrement, RowTriggers: seen.RowTriggers(),
	}
	switch {
	case key.AutoIncrement && desc.ZeroKey == insert.KeyGiven: // the server would replace the 0
		desc.ZeroKey = insert.KeyBySession
	case f.UUIDs != insert.NoUUID && desc.ZeroKey == insert.KeyBySession: // sql_mode does not affect UUIDs
		desc.ZeroKey = insert.KeyWanted
	}

	if rules.IsPattern(rule) && !key.AutoIncrement {
		desc.OnReplacedZero = t.NoteReplacedZero
	}
	for _, col := range seen.Columns {
		if !col.Invisible {
			desc.Columns = append(desc.Columns, col.Name)
		}
		if col.DefaultReadsID {
			desc.Triggers.Kinds |= insert.ReadsID
		}
	}
	updateReadsID := false // a trigger that runs with an UPDATE reads the session's id
	for _, tr := range seen.Triggers {
		sets := tr.Effects.SetsKey(key.Name)
		desc.SetsKey, desc.UpdatesSetKey = desc.SetsKey || tr.Event == "INSERT" && sets, desc.UpdatesSetKey || tr.Event == "UPDATE" && sets
		updateReadsID = updateReadsID || tr.Event == "UPDATE" && tr.Effects.Kinds.HasAny(insert.ReadsID)
		desc.Triggers.Add(tr.Effects)
	}
	if !set.Config.ResultOnly && f.UUIDs == insert.NoUUID {
		desc.UpdatesID = f.Integer && key.Updatable && !desc.UpdatesSetKey && !updateReadsID
		switch {
		case desc.SetsKey:
		case desc.Triggers.Kinds.HasAny(insert.ReadsID):
			desc.IDWay = insert.IDSetAfter
		default:
			desc.IDWay = insert.IDInText
		}
	}
	return desc, nil
}

// KeylessCopy describes a temporary table that was created LIKE a configured table. It has neither
// AUTO_INCREMENT nor ids, so a row without a key is refused.
func KeylessCopy(like *insert.Table, name catalog.Name) *insert.Table {
	desc := *like
	desc.Name = name
	desc.Floors, desc.IDWay, desc.UpdatesID, desc.RowTriggers = false, insert.NoID, false, insert.NoTriggers
	desc.Triggers = insert.Effects{Kinds: desc.Triggers.Kinds & insert.ReadsID}
	desc.Keyless, desc.Keys = true, like.Keys.(*counters.Table).KeylessCopy(name)
	return &desc
}
