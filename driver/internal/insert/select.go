package insert

// A Select is what an INSERT … SELECT or INSERT … TABLE needs. Its rows are
// numbered by the server: count them, draw a block, run the text with a Fill
// of that block. Where more rows come than the block holds the server answers
// error 1690 and stores none (on a transactional engine: others are for the
// caller to refuse); try again with a larger block, a few times.
//
// Each filled row gets the next id of the block, in the order of the select.
// The text of a Plan with a Select always carries ids as literals.
type Select struct {
	// Bound is the most rows the statement can write, where that can be read
	// from it (a literal LIMIT, no FROM); 0: count them.
	Bound int

	// Count is the text of a query that answers how many ids are needed, and
	// Args the range of the text's placeholders that are its arguments.
	Count string
	Args  [2]int
}

// selected reads the source of an INSERT … SELECT and what follows it.
func (w *writer) selected() error {
	if w.atEnd() {
		return w.unread(w.Table)
	}
	return refuse(w.Table, "INSERT … SELECT", "select the rows and insert them")
}

func (s *Select) size() int { return 0 }

func (s *Select) number(b []byte, f *Fill) []byte { return b }
