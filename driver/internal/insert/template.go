package insert

import (
	"slices"
	"sync/atomic"
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
	marked []int // for each of Plan.Inserts which edit carries the marker, -1 none, -2 not filled
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

// templates are those that a plan keeps.
type templates struct {
	likely atomic.Pointer[Template]    // everything filled
	others atomic.Pointer[[]*Template] // copied when one is added
}

// keptTemplates is how many templates a plan keeps beside the likely one.
const keptTemplates = 16

const notFilled = -2

// Template returns the text and the arguments' places for an execution with
// arguments.
func (p *Plan) Template(blocks []Block) *Template {
	if t := p.templates.likely.Load(); t != nil && isLikely(blocks) {
		return t
	}
	if others := p.templates.others.Load(); others != nil {
		for _, t := range *others {
			if p.fits(t, blocks) {
				return t
			}
		}
	}
	return p.newTemplate(blocks)
}

func isLikely(blocks []Block) bool {
	for i := range blocks {
		if blocks[i].N == 0 || slices.Contains(blocks[i].Explicit, true) {
			return false
		}
	}
	return true
}

// fits says whether a template has its markers where the blocks want them.
func (p *Plan) fits(t *Template, blocks []Block) bool {
	for i := range blocks {
		if t.marked[i] != p.markedOrNot(i, &blocks[i]) {
			return false
		}
	}
	return true
}

func (p *Plan) markedOrNot(i int, b *Block) int {
	if b.N == 0 {
		return notFilled
	}
	return p.marked(&p.Inserts[i], b)
}

// newTemplate makes a template, and keeps it if there is room.
func (p *Plan) newTemplate(blocks []Block) *Template {
	t := p.makeTemplate(blocks)
	if t.Literal {
		return t
	}
	if isLikely(blocks) {
		if !p.templates.likely.CompareAndSwap(nil, t) {
			return p.templates.likely.Load()
		}
		return t
	}
	for {
		old := p.templates.others.Load()
		var list []*Template
		if old != nil {
			list = *old
		}
		for _, o := range list {
			if p.fits(o, blocks) {
				return o
			}
		}
		if len(list) >= keptTemplates {
			return t
		}
		list = append(slices.Clip(list), t)
		if p.templates.others.CompareAndSwap(old, &list) {
			return t
		}
	}
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
		t.marked[i] = p.markedOrNot(i, b)
		if b.N > 0 {
			t.NumInput += in.Lacking
		}
		if t.marked[i] >= 0 && in.variableDistance() {
			t.NumInput++
		}
		places += in.Lacking + len(in.ArgKeys) + 1
	}
	style := placeholders
	if t.NumInput > maxParams {
		t.Literal, t.NumInput, style = true, p.NumInput, literals
	}
	t.places = slices.Grow(roomy.places[:0], places)
	t.Text = p.render(blocks, style, t)
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
				dst = append(dst, args[used])
			} else {
				dst = append(dst, id(int(insert), b, k))
				k++
			}
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
