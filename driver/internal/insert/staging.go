package insert

// A Staging is how a statement whose rows only the server knows puts them into a
// temporary table, the stage, and copies them from there with their keys. The reader finds its
// parts, and package staged runs it.
type Staging struct {
	Source  Source
	Columns []string // that the statement writes, as the user spells them
	Key     int      // index of the key in Columns, -1 if it is not listed
	Needs   Need

	FillArgs   int       // how many of the text's placeholders belong to Fill; the rest belong to the copy
	Fill       [3]string // the verb of what fills the stage, up to its name, and what follows that
	Head       [2]string // the same of the copy: INSERT, … INTO t PARTITION (…)
	Alias      string    // the source's name for an update list
	Names      []string  // its columns' names there, as Columns; "" for one without
	Clash      Clash
	Tail       string // ON DUPLICATE KEY UPDATE … RETURNING …
	MarkedTail string // the same with the upsert's marker
}

// A Source gives the rows of a staged statement.
type Source uint8

const (
	Query Source = iota // INSERT … SELECT
	File                // LOAD DATA
)

// A Need is a set of steps that not every staged statement takes.
type Need uint8

const (
	// OneTime: the source reads the clock, or may do so, and the statement's time can be set.
	OneTime Need = 1 << iota

	// NamesTried: the update list names columns that are none of the table's, but
	// perhaps the source's. The copy runs once while there are no rows, to learn
	// whether the server finds them.
	NamesTried

	// IDBefore: the copy may read the session's id, in its update list, in RETURNING
	// or in a trigger. It carries no marker then, and has to find the value from before the statement.
	IDBefore
)

// Any reports whether it has one of some steps.
func (n Need) Any(of Need) bool { return n&of != 0 }

// A Clash is why the server would read an update list in another way than the user.
type Clash uint8

const (
	NoClash       Clash = iota
	JoinCondition       // ON DUPLICATE is the condition of the source's last join
	SameName            // a name in the list is that of the table and of the source
)
