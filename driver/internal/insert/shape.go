package insert

// A Shape is the text of a plan for statements with arguments: every key that
// the text lacks is a placeholder, so that one shape is one prepared statement.
// It depends on where the keys go, not on their values. A shape that a Plan
// keeps is the same pointer each time; Text tells others apart.
type Shape struct {
	Text     string
	NumInput int // placeholders in Text

	// Literal says that the ids are written into Text, because the statement
	// would have more than 65,535 placeholders or its form has no place for
	// them: the shape serves this one execution.
	Literal bool

	slots []slot
}

// A slot is a place among the user's arguments where one is inserted or
// replaced.
type slot struct {
	at     int32 // the user's argument before which it stands, or which it replaces
	insert int32 // index in Plan.Inserts
	kind   slotKind
}

type slotKind uint8

type shapes struct{}

// Text renders the text with the ids as literals, for texts that are executed
// without arguments.
func (p *Plan) Text(fills []Fill) string {
	return p.text
}

// Shape returns the text and the arguments' places for an execution with
// arguments.
func (p *Plan) Shape(fills []Fill) *Shape {
	return &Shape{Text: p.text, NumInput: p.NumInput}
}

// AppendArgs appends to dst the arguments of a shape: the user's, with the ids
// of fills at their places. The fills are those the shape was made for. id
// converts an id to an argument. Nothing is allocated but dst's growth.
func AppendArgs[T any](dst, args []T, s *Shape, fills []Fill, id func(int64) T) []T {
	return append(dst, args...)
}
