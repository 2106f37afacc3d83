package insert

// A Staging states how to run a statement if only the server can see its rows. The rows are written to a
// temporary table, the stage, and copied from there with their keys. Package read sets the fields, and
// package staged runs the statement.
type Staging struct {
	Source  Source
	Columns []string // columns that the statement writes, in the user's spelling
	Key     int      // index of the key in Columns, -1 if it is not listed
	Needs   Need

	FillArgs   int       // number of the query's placeholders in Fill; the other placeholders are in the copy
	Fill       [3]string // statement that fills the stage: its verb, the text up to the stage's name, and the text after the name
	Head       [2]string // start of the copy: its verb, and the text up to the end of the target (INTO t PARTITION (…))
	Alias      string    // the source's name in an update list
	Names      []string  // names of the source's columns in an update list, in the order of Columns; "" for a column without a name
	Clash      Clash
	Tail       string // ON DUPLICATE KEY UPDATE … RETURNING …
	MarkedTail string // Tail with the upsert's marker
}

// A Source is the source of a staged statement's rows.
type Source uint8

const (
	FromQuery Source = iota // INSERT … SELECT
	FromFile                // LOAD DATA
)

// A Need is a set of steps that only some staged statements need.
type Need uint8

const (
	// NeedOneTime: the source may read the clock, and the statement's time can be set.
	NeedOneTime Need = 1 << iota

	// NeedTryNames: the update list names columns that are not in the table, but may be in the source. The
	// copy runs once with no rows, to find out whether the server resolves the names.
	NeedTryNames

	// NeedIDBefore: the copy may read the session's id, in its update list, in RETURNING or in a trigger.
	// It must then read the id that the session had before the statement, so it contains no marker.
	NeedIDBefore
)

// HasAny reports whether n has at least one of the steps in of.
func (n Need) HasAny(of Need) bool { return n&of != 0 }

// A Clash is a reason why an update list would not have the intended meaning in the copy.
type Clash uint8

const (
	NoClash            Clash = iota
	ClashJoinCondition       // the server would read ON DUPLICATE as the condition of the source's last join
	ClashSameName            // a name in the list exists in the table and in the source
)
