package insert

import (
	"slices"
)

// maxParams is the most placeholders a statement may have.
const maxParams = 65535

// A Template is the text of a plan for statements with arguments: every key
// that the text lacks is a placeholder, so that one template is one prepared
// statement. It depends on where the keys go, not on their values. A template
// that a Plan keeps is the same pointer each time; Text tells others apart.
type Template struct {
	Text     string
	NumInput int // placeholders in Text

	// Literal says that the ids are written into Text, because the statement
	// would have more than 65,535 placeholders: the template serves this one
	// execution.
	Literal bool

	places []place
	marked []int // for each of Plan.Inserts which edit carries the marker, -1 none, or notFilled

	older  *Template // that the plan keeps
	before int       // how many these are
}

// A place is where one of the user's arguments is joined by another, or
// replaced.
type place struct {
	at     int32 // the user's argument before which it stands, or which it is
	insert int32 // index in Plan.Inserts
	ref    int32 // placeArgument: index in Insert.ArgKeys
	kind   placeKind
}

type placeKind uint8

const (
	placeKey      placeKind = iota // the next id
	placeFirst                     // the first id, in the marker
	placeDistance                  // how far the last id is from it
	placeArgument                  // an argument, or the next id in its place
	placeMarker                    // the first id in the place of an argument
	placeNothing                   // nothing: the next id is in the text
)

func (t *Template) place(at, insert int, ref int32, kind placeKind) {
	if t != nil {
		t.places = append(t.places, place{int32(at), int32(insert), ref, kind})
	}
}

// keptTemplates is how many templates a plan keeps.
const keptTemplates = 16

// Template returns the text and the arguments' places for an execution with
// arguments, and keeps them if there is room.
func (p *Plan) Template(blocks []Block) *Template {
	kept := p.templates.Load()
next:
	for t := kept; t != nil; t = t.older {
		for i := range blocks {
			if t.marked[i] != p.Inserts[i].marked(p.Edits, &blocks[i]) {
				continue next // its markers are elsewhere
			}
		}
		return t
	}
	t := p.makeTemplate(blocks)
	if kept != nil {
		t.older, t.before = kept, kept.before+1
	}
	if !t.Literal && t.before < keptTemplates {
		p.templates.CompareAndSwap(kept, t) // where another was kept meanwhile, this one is made again
	}
	return t
}

func (p *Plan) makeTemplate(blocks []Block) *Template {
	roomy := &struct {
		Template
		marked [1]int
		places [2]place
	}{}
	t := &roomy.Template
	t.NumInput = p.NumInput
	t.marked = append(roomy.marked[:0], make([]int, len(p.Inserts))...)
	places := 0
	for i := range p.Inserts {
		in, b := &p.Inserts[i], &blocks[i]
		t.marked[i] = in.marked(p.Edits, b)
		if b.N > 0 {
			t.NumInput += in.Lacking
		}
		if t.marked[i] >= 0 && in.variableDistance() {
			t.NumInput++
		}
		places += in.Lacking + len(in.ArgKeys) + 1
	}
	if t.NumInput > maxParams {
		t.Literal, t.NumInput = true, p.NumInput
	}
	t.places = slices.Grow(roomy.places[:0], places)
	t.Text = p.render(blocks, t.Literal, t)
	return t
}

// AppendArgs appends to dst the arguments of a template: the user's, with the
// ids of blocks at their places. The blocks are those the template was made
// for. id makes an argument of the k-th id of a block, number of a number.
// Nothing is allocated but dst's growth.
func AppendArgs[T any](dst, args []T, t *Template, blocks []Block, id func(insert int, b *Block, k int) T, number func(int64) T) []T {
	var used, insert int32
	k := 0 // ids of the statement used so far
	for _, p := range t.places {
		if p.insert != insert {
			insert, k = p.insert, 0
		}
		dst = append(dst, args[used:p.at]...)
		used = p.at
		b := &blocks[p.insert]
		switch p.kind {
		case placeKey:
			dst = append(dst, id(int(insert), b, k))
			k++
		case placeFirst:
			dst = append(dst, number(b.First))
			k++
		case placeDistance:
			dst = append(dst, number(int64(b.N-1)))
		case placeArgument:
			if b.Explicit != nil && b.Explicit[p.ref] {
				continue // copied with those behind it
			}
			dst = append(dst, id(int(insert), b, k))
			k++
			used++
		case placeMarker:
			dst = append(dst, number(b.First))
			k++
			used++
		case placeNothing:
			k++
		}
	}
	return append(dst, args[used:]...)
}
