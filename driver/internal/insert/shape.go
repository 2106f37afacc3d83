package insert

import (
	"slices"
	"strconv"
	"sync/atomic"
	"unsafe"
)

// maxParams is the most placeholders a statement may have.
const maxParams = 65535

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
	marks []int // for each of Plan.Inserts which edit carries the mark, -1 none, -2 not filled
}

// A slot is a place among the user's arguments where one is inserted or
// replaced.
type slot struct {
	at     int32 // the user's argument before which it stands, or which it is
	insert int32 // index in Plan.Inserts
	ref    int32 // slotArgument: index in Insert.ArgKeys
	kind   slotKind
}

type slotKind uint8

const (
	slotKey      slotKind = iota // the next id
	slotFirst                    // the first id, in the mark
	slotDistance                 // how far the last id is from it
	slotArgument                 // an argument, or the next id in its place
	slotMark                     // the first id in the place of an argument
	slotLiteral                  // nothing: the next id is in the text
)

// shapes are those that a plan keeps.
type shapes struct {
	likely atomic.Pointer[Shape]    // everything filled
	others atomic.Pointer[[]*Shape] // copied when one is added
}

// keptShapes is how many shapes a plan keeps beside the likely one.
const keptShapes = 16

const notFilled = -2

// Shape returns the text and the arguments' places for an execution with
// arguments.
func (p *Plan) Shape(fills []Fill) *Shape {
	if s := p.shapes.likely.Load(); s != nil && p.isLikely(fills) {
		return s
	}
	if others := p.shapes.others.Load(); others != nil {
		for _, s := range *others {
			if p.fits(s, fills) {
				return s
			}
		}
	}
	return p.newShape(fills)
}

func (p *Plan) isLikely(fills []Fill) bool {
	for i := range fills {
		if fills[i].N == 0 || slices.Contains(fills[i].Explicit, true) {
			return false
		}
	}
	return true
}

// fits says whether a shape has its marks where the fills want them.
func (p *Plan) fits(s *Shape, fills []Fill) bool {
	for i := range fills {
		if s.marks[i] != p.markOrNot(i, &fills[i]) {
			return false
		}
	}
	return true
}

func (p *Plan) markOrNot(i int, f *Fill) int {
	if f.N == 0 && p.Inserts[i].Select == nil {
		return notFilled
	}
	return p.mark(&p.Inserts[i], f)
}

// newShape makes a shape, and keeps it if there is room.
func (p *Plan) newShape(fills []Fill) *Shape {
	s := p.render(fills)
	if s.Literal {
		return s
	}
	if p.isLikely(fills) {
		if !p.shapes.likely.CompareAndSwap(nil, s) {
			return p.shapes.likely.Load()
		}
		return s
	}
	for {
		old := p.shapes.others.Load()
		var list []*Shape
		if old != nil {
			list = *old
		}
		for _, o := range list {
			if p.fits(o, fills) {
				return o
			}
		}
		if len(list) >= keptShapes {
			return s
		}
		list = append(slices.Clip(list), s)
		if p.shapes.others.CompareAndSwap(old, &list) {
			return s
		}
	}
}

// render makes a shape.
func (p *Plan) render(fills []Fill) *Shape {
	usual := &struct {
		Shape
		marks [1]int
		slots [2]slot
	}{}
	s := &usual.Shape
	s.NumInput = p.NumInput
	s.marks = append(usual.marks[:0], make([]int, len(p.Inserts))...)
	size, slots := len(p.text), 0
	for i := range p.Inserts {
		in, f := &p.Inserts[i], &fills[i]
		s.marks[i] = p.markOrNot(i, f)
		s.Literal = s.Literal || in.Select != nil
		size += len(markOpen) + len("?)+?")
		slots++
		for _, e := range p.edits[in.edits.from:in.edits.to] {
			switch {
			case e.kind <= filled:
				size += len(p.texts[e.ref])
			case e.kind == argument:
				slots++
			default:
				size += len(", ?")
				slots++
				if f.N > 0 {
					s.NumInput++
				}
			}
		}
		if s.marks[i] >= 0 && p.distance(in) {
			s.NumInput++
		}
	}
	if s.NumInput > maxParams {
		s.Literal = true
	}
	if s.Literal {
		s.Text, s.NumInput = p.literal(fills), p.NumInput
		s.slots = p.literalSlots(s.marks, fills)
		return s
	}
	b := make([]byte, 0, size)
	s.slots = slices.Grow(usual.slots[:0], slots)
	last := 0
	for i := range p.Inserts {
		in, f := &p.Inserts[i], &fills[i]
		for j, e := range p.edits[in.edits.from:in.edits.to] {
			if e.kind == argument && f.N > 0 && j != s.marks[i] {
				s.slots = append(s.slots, slot{int32(in.ArgKeys[e.ref].Arg), int32(i), e.ref, slotArgument})
				continue
			}
			if !in.takes(e, f) {
				continue
			}
			b = append(b, p.text[last:e.pos]...)
			last = int(e.end)
			kind, at := slotKey, e.ref
			switch e.kind {
			case always, filled:
				b = append(b, p.texts[e.ref]...)
				continue
			case keyComma:
				b = append(b, ", "...)
			case keySpace:
				b = append(b, ' ')
			case argument:
				kind, at = slotMark, int32(in.ArgKeys[e.ref].Arg)
			}
			if j != s.marks[i] {
				b = append(b, '?')
				s.slots = append(s.slots, slot{at, int32(i), 0, kind})
				continue
			}
			if kind == slotKey {
				kind = slotFirst
			}
			s.slots = append(s.slots, slot{at, int32(i), e.ref, kind})
			b = append(b, markOpen...)
			b = append(b, "?)"...)
			switch {
			case in.Upsert:
			case p.distance(in):
				b = append(b, "+?"...)
				if kind == slotMark {
					at++ // behind the argument that the mark took
				}
				s.slots = append(s.slots, slot{at, int32(i), 0, slotDistance})
			case f.N > 1:
				b = append(b, '+')
				b = strconv.AppendInt(b, int64(f.N-1), 10)
			}
		}
	}
	b = append(b, p.text[last:]...)
	s.Text = unsafe.String(unsafe.SliceData(b), len(b))
	return s
}

// distance says whether the distance in the mark depends on arguments.
func (p *Plan) distance(in *Insert) bool { return !in.Upsert && len(in.ArgKeys) > 0 && in.Rows > 1 }

// literalSlots are the slots of a shape that has the ids in its text, but for
// those that take the place of arguments.
func (p *Plan) literalSlots(marks []int, fills []Fill) []slot {
	var slots []slot
	for i := range p.Inserts {
		in := &p.Inserts[i]
		if len(in.ArgKeys) == 0 || fills[i].N == 0 {
			continue
		}
		for j, e := range p.edits[in.edits.from:in.edits.to] {
			switch {
			case e.kind <= filled:
			case e.kind != argument:
				slots = append(slots, slot{e.ref, int32(i), 0, slotLiteral})
			case j == marks[i]:
				slots = append(slots, slot{int32(in.ArgKeys[e.ref].Arg), int32(i), e.ref, slotMark})
			default:
				slots = append(slots, slot{int32(in.ArgKeys[e.ref].Arg), int32(i), e.ref, slotArgument})
			}
		}
	}
	return slots
}
