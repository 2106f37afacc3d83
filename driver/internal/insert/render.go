package insert

import (
	"encoding/binary"
	"encoding/hex"
	"math/bits"
	"slices"
	"strconv"
	"unsafe"
)

// An Edit replaces text[Pos:End] of the user's query. Edits are in the order of the query; several edits may
// insert text at one position.
type Edit struct {
	Pos, End int32
	Ref      int32 // EditAlways, EditFilled, EditUpdated: index in Findings.Texts; EditArgument: index in Insert.ArgKeys; other kinds: placeholders before it
	Kind     EditKind
}

// An EditKind states what an Edit writes, and in which case.
type EditKind uint8

const (
	EditAlways   EditKind = iota // a fixed text
	EditFilled                   // a fixed text, if the statement is filled
	EditUpdated                  // a fixed text, if the statement is filled or Insert.Update is AlwaysUpdate
	EditKey                      // a key
	EditCommaKey                 // a key after a comma
	EditArgument                 // a user's placeholder in place of a key; its argument may be a key
)

// Text returns the query with the ids as literals, for queries that are executed without arguments.
// blocks has one Block for each of p.Inserts.
func (p *Plan) Text(blocks []Block) string {
	for i := range p.Inserts {
		if blocks[i].N > 0 || p.Inserts[i].Positional || p.Inserts[i].Update == AlwaysUpdate {
			return p.render(blocks, nil)
		}
	}
	return p.text
}

// maxParams is the maximum number of placeholders in a statement.
const maxParams = 65535

// A Template is the rendered query of a plan for executions with arguments: every generated key is a
// placeholder, so that it can be prepared once. It depends on the places of the keys,
// not on their values. A Plan returns the same pointer for a cached template; compare other templates by Text.
type Template struct {
	Text     string
	NumInput int // placeholders in Text

	// Literal is set if the ids are written into Text, because the statement would have more than
	// 65,535 placeholders. Such a template is valid for one execution.
	Literal bool

	places      []place
	markedEdits []int // result of findMarkedEdit for each of Plan.Inserts

	older      *Template // next older cached template
	olderCount int       // number of older templates
}

// A place is a position at which a value of the plan is inserted into the user's arguments, or replaces
// an argument.
type place struct {
	at     int32 // index of the user's argument that the value precedes or replaces
	insert int32 // index in Plan.Inserts
	ref    int32 // index in Insert.ArgKeys of the argument that the value replaces unless the argument is a key; -1 if the value replaces no argument
	value  placeValue
}

// A placeValue is the kind of value that a plan writes in a place.
type placeValue uint8

const (
	nextID    placeValue = iota
	firstID              // first id, in the marker
	distance             // distance of the last id from the first, in the marker
	literalID            // an id that is already in the template's text
)

// maxTemplates is the maximum number of templates that a plan caches.
const maxTemplates = 16

// Template returns the template for an execution with arguments. It is cached if there is room.
func (p *Plan) Template(blocks []Block) *Template {
	kept := p.templates.Load()
next:
	for t := kept; t != nil; t = t.older {
		for i := range blocks {
			in, b := &p.Inserts[i], &blocks[i]
			mark := in.fullMarkedEdit
			if b.N == 0 || b.Explicit != nil {
				mark = in.findMarkedEdit(p.Edits, b)
			}
			if t.markedEdits[i] != mark {
				continue next // this template has its markers in other places
			}
		}
		return t
	}
	t := p.makeTemplate(blocks, false)
	if t.NumInput > maxParams {
		return p.makeTemplate(blocks, true)
	}
	if kept != nil {
		t.older, t.olderCount = kept, kept.olderCount+1
	}
	if t.olderCount < maxTemplates {
		p.templates.CompareAndSwap(kept, t) // t is not cached if another goroutine has just cached a template
	}
	return t
}

func (p *Plan) makeTemplate(blocks []Block, literal bool) *Template {
	roomy := &struct {
		Template
		marked [1]int
		places [2]place
	}{}
	t := &roomy.Template
	t.Literal, t.NumInput, t.markedEdits = literal, p.NumInput, roomy.marked[:0]
	places := 0
	for i := range p.Inserts {
		in := &p.Inserts[i]
		places += in.RowsWithoutKey + len(in.ArgKeys) + 1
	}
	t.places = slices.Grow(roomy.places[:0], places)
	t.Text = p.render(blocks, t)
	return t
}

// AppendArgs appends the arguments of a template to dst: args, the user's arguments, with the ids of
// blocks at their places. t must be the result of Plan.Template for blocks. id returns the k-th id of a
// block as an argument, and number returns an integer as an argument. AppendArgs allocates only if dst grows.
func AppendArgs[T any](dst, args []T, t *Template, blocks []Block, id func(insert int, b *Block, k int) T, number func(int64) T) []T {
	var used, insert int32
	k := 0 // number of the statement's ids used so far
	for _, p := range t.places {
		if p.insert != insert {
			insert, k = p.insert, 0
		}
		dst = append(dst, args[used:p.at]...)
		used = p.at
		b := &blocks[p.insert]
		if p.ref >= 0 {
			if b.Explicit != nil && b.Explicit[p.ref] {
				continue // the argument is copied with the next ones
			}
			used++
		}
		switch p.value {
		case nextID:
			dst = append(dst, id(int(insert), b, k))
		case firstID:
			dst = append(dst, number(b.First))
		case distance:
			dst = append(dst, number(int64(b.N-1)))
			continue
		}
		k++
	}
	return append(dst, args[used:]...)
}

// render returns the query with its keys. If t is not nil, it records the places of the arguments in t.
// The keys are placeholders if t is set and not Literal, and literals otherwise. The placeholders of the
// user's query remain placeholders.
func (p *Plan) render(blocks []Block, t *Template) string {
	size := p.size
	for i := range blocks {
		key := len(", ") + bits.Len64(uint64(blocks[i].First)+uint64(blocks[i].N))/3 + 1 // at least the digits of the last id
		if p.Inserts[i].Table.UUID != NoUUID {
			key = len(", ''") + 36
		}
		size += (blocks[i].N + 1) * key
	}
	text := make([]byte, 0, size)
	literal := t == nil || t.Literal
	last := 0
	for i := range p.Inserts {
		in, b := &p.Inserts[i], &blocks[i]
		k, marked := 0, in.fullMarkedEdit // number of ids used
		if b.N == 0 || b.Explicit != nil {
			marked = in.findMarkedEdit(p.Edits, b)
		}
		if t != nil {
			t.markedEdits = append(t.markedEdits, marked)
		}
		for j, e := range p.Edits[in.EditFrom:in.EditTo] {
			at, ref, v := int(e.Ref), int32(-1), nextID
			if e.Kind == EditArgument {
				at, ref = in.ArgKeys[e.Ref], e.Ref
			}
			switch {
			case b.N == 0 && e.Kind != EditAlways && !(e.Kind == EditUpdated && in.Update == AlwaysUpdate):
				continue
			case e.Kind == EditArgument && j != marked: // remains a placeholder
				if t != nil {
					t.addPlace(at, i, ref, v)
				}
				if b.Explicit == nil || !b.Explicit[ref] {
					k++
				}
				continue
			}
			text = append(text, p.text[last:e.Pos]...)
			last = int(e.End)
			switch {
			case e.Kind <= EditUpdated:
				text = append(text, p.Texts[e.Ref]...)
				continue
			case e.Kind == EditCommaKey:
				text = append(text, ", "...)
			}
			if j == marked {
				text, v = append(text, markerOpen...), firstID
			}
			switch {
			case ref >= 0 || !literal:
				text = append(text, '?')
			case v == firstID:
				text, v = strconv.AppendInt(text, b.First, 10), literalID
			default:
				text, v = in.Table.appendID(text, b, k), literalID
			}
			if t != nil {
				t.addPlace(at, i, ref, v)
			}
			if j == marked {
				if text = append(text, ')'); in.Duplicates < Update && in.Rows != 1 {
					text = in.appendDistance(text, b, at, i, ref, t)
				}
			}
			k++
		}
	}
	text = append(text, p.text[last:]...)
	return unsafe.String(unsafe.SliceData(text), len(text))
}

// appendDistance writes the distance of the last id from the first, after the marker of a statement with several rows.
func (in *Insert) appendDistance(text []byte, b *Block, at, i int, ref int32, t *Template) []byte {
	switch {
	case len(in.ArgKeys) > 0 && t != nil && !t.Literal: // the distance depends on arguments
		if ref >= 0 {
			at++ // after the argument in the marker
		}
		text = append(text, "+?"...)
		t.addPlace(at, i, -1, distance)
	case b.N > 1:
		text = append(text, '+')
		text = strconv.AppendInt(text, int64(b.N-1), 10)
	}
	return text
}

// addPlace records the place of a value.
func (t *Template) addPlace(at, insert int, ref int32, v placeValue) {
	t.places = append(t.places, place{int32(at), int32(insert), ref, v})
	if ref < 0 && v != literalID {
		t.NumInput++
	}
}

// appendID appends the k-th id of a block as an SQL literal.
func (t *Table) appendID(b []byte, block *Block, k int) []byte {
	if t.UUID == NoUUID {
		return strconv.AppendInt(b, block.First+int64(k), 10)
	}
	id := block.UUIDAt(k)
	if t.UUID == UUIDBytes {
		b = append(b, "x'"...)
		b = hex.AppendEncode(b, id[:])
	} else {
		b = append(b, '\'')
		b = appendUUID(b, id)
	}
	return append(b, '\'')
}

// appendUUID appends a UUID in its usual form, 36 characters.
func appendUUID(b []byte, id [16]byte) []byte {
	for i, part := range [][]byte{id[:4], id[4:6], id[6:8], id[8:10], id[10:]} {
		if i > 0 {
			b = append(b, '-')
		}
		b = hex.AppendEncode(b, part)
	}
	return b
}

// UUIDAt returns the k-th UUID of the block.
func (b *Block) UUIDAt(k int) [16]byte {
	id := b.UUID
	binary.BigEndian.PutUint64(id[8:], binary.BigEndian.Uint64(id[8:])+uint64(k))
	return id
}

// notFilled is the value of a marked edit's index if the statement gets no ids.
const notFilled = -2

// findMarkedEdit returns the index, among the statement's edits, of the edit that contains the marker. It
// returns -1 if the statement has no marker, and notFilled if the statement gets no ids. For a block that fills every
// possible row, it returns fullMarkedEdit.
func (in *Insert) findMarkedEdit(edits []Edit, b *Block) int {
	switch {
	case b.N == 0:
		return notFilled
	case in.Way != IDInText:
		return -1
	}
	edits = edits[in.EditFrom:in.EditTo]
	for i := range edits {
		j := i
		if in.Duplicates < Update {
			j = len(edits) - 1 - i
		}
		if e := edits[j]; e.Kind > EditUpdated && !(e.Kind == EditArgument && b.Explicit != nil && b.Explicit[e.Ref]) {
			return j
		}
	}
	return -1
}
