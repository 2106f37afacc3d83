package insert

import (
	"encoding/binary"
	"encoding/hex"
	"math/bits"
	"strconv"
	"unsafe"
)

// An Edit replaces text[Pos:End] of a user's text. Edits stand in text order;
// several may insert at one position.
type Edit struct {
	Pos, End int32
	Ref      int32 // Always, Filled, Updated: index in Findings.Texts; Argument: index in Insert.ArgKeys; Key…: placeholders before it
	Kind     EditKind
}

// An EditKind is what an Edit writes, and where.
type EditKind uint8

const (
	Always   EditKind = iota // a fixed text
	Filled                   // a fixed text, where the statement is filled
	Updated                  // likewise, or where Insert.OwnMarker is set
	Key                      // a key
	CommaKey                 // a key after a comma
	Argument                 // a placeholder that may be a key
)

// Text renders the text with the ids as literals, for texts that are executed
// without arguments.
func (p *Plan) Text(blocks []Block) string {
	for i := range p.Inserts {
		if blocks[i].N > 0 || p.Inserts[i].Positional || p.Inserts[i].OwnMarker {
			return p.render(blocks, true, nil)
		}
	}
	return p.text
}

const markerOpen = "LAST_INSERT_ID("

// render writes the text with its keys, and notes in t, if there is one, where
// its arguments come from. Ids are literals, but ? where one takes the place of an
// argument, or all of them are ?.
func (p *Plan) render(blocks []Block, literals bool, t *Template) string {
	size := p.size
	for i := range blocks {
		key := len(", ") + bits.Len64(uint64(blocks[i].First)+uint64(blocks[i].N))/3 + 1 // at least the digits of the last one
		if p.Inserts[i].Table.UUID != NoUUID {
			key = len(", ''") + 36
		}
		size += (blocks[i].N + 1) * key
	}
	b := make([]byte, 0, size)
	last := 0
	for i := range p.Inserts {
		in, block := &p.Inserts[i], &blocks[i]
		k, marked := 0, in.marked(p.Edits, block) // k ids were used
		for j, e := range p.Edits[in.EditFrom:in.EditTo] {
			if e.Kind == Argument && block.N > 0 && j != marked {
				t.place(in.ArgKeys[e.Ref].Arg, i, e.Ref, placeArgument)
				if block.Explicit == nil || !block.Explicit[e.Ref] {
					k++
				}
				continue // stays a placeholder, whatever its value is
			}
			if block.N == 0 && e.Kind != Always && !(e.Kind == Updated && in.OwnMarker) {
				continue
			}
			b = append(b, p.text[last:e.Pos]...)
			last = int(e.End)
			switch e.Kind {
			case Always, Filled, Updated:
				b = append(b, p.Texts[e.Ref]...)
				continue
			case CommaKey:
				b = append(b, ", "...)
			}
			switch {
			case j == marked:
				b = p.marker(b, in, i, e, block, literals, t)
			case literals:
				b = in.Table.appendID(b, block, k)
				if t != nil {
					t.place(int(e.Ref), i, 0, placeNothing)
				}
			default:
				b = append(b, '?')
				t.place(int(e.Ref), i, 0, placeKey)
			}
			k++
		}
	}
	b = append(b, p.text[last:]...)
	return unsafe.String(unsafe.SliceData(b), len(b))
}

// appendID writes the k-th id of a block as SQL does.
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

// appendUUID writes a UUID in its usual form.
func appendUUID(b []byte, id [16]byte) []byte {
	for i, part := range [][]byte{id[:4], id[4:6], id[6:8], id[8:10], id[10:]} {
		if i > 0 {
			b = append(b, '-')
		}
		b = hex.AppendEncode(b, part)
	}
	return b
}

// UUIDAt is the k-th UUID of the block.
func (b *Block) UUIDAt(k int) [16]byte {
	id := b.UUID
	binary.BigEndian.PutUint64(id[8:], binary.BigEndian.Uint64(id[8:])+uint64(k))
	return id
}

// marker writes LAST_INSERT_ID(first), and how far the last id is from it.
func (p *Plan) marker(b []byte, in *Insert, i int, e Edit, block *Block, literals bool, t *Template) []byte {
	b = append(b, markerOpen...)
	at := int(e.Ref)
	switch {
	case e.Kind == Argument:
		at = in.ArgKeys[e.Ref].Arg
		b = append(b, '?')
		t.place(at, i, e.Ref, placeMarker)
		at++ // what follows stands behind the argument that the marker took
	case literals:
		b = strconv.AppendInt(b, block.First, 10)
		if t != nil {
			t.place(at, i, 0, placeNothing)
		}
	default:
		b = append(b, '?')
		t.place(at, i, 0, placeFirst)
	}
	b = append(b, ')')
	switch {
	case in.Upsert:
	case !literals && in.variableDistance():
		b = append(b, "+?"...)
		t.place(at, i, 0, placeDistance)
	case block.N > 1:
		b = append(b, '+')
		b = strconv.AppendInt(b, int64(block.N-1), 10)
	}
	return b
}

// variableDistance says whether the distance in the marker depends on
// arguments.
func (in *Insert) variableDistance() bool {
	return !in.Upsert && len(in.ArgKeys) > 0 && in.Rows > 1
}

// fixedSize is how long the text gets without its keys.
func (f *Findings) fixedSize(text string) int {
	n := len(text) + len(f.Inserts)*len(markerOpen+")+")
	for _, inserted := range f.Texts {
		n += len(inserted)
	}
	return n
}

// notFilled is no edit either: the statement gets no ids.
const notFilled = -2

// marked returns which of a statement's edits carries the marker, -1 for none, or
// notFilled.
func (in *Insert) marked(edits []Edit, b *Block) int {
	switch {
	case b.N == 0:
		return notFilled
	case b.Explicit == nil:
		return in.allMarked
	}
	return in.markedAmong(edits, b)
}

// markedAmong looks for the Edit that carries the marker where ids are given, -1 for none.
func (in *Insert) markedAmong(edits []Edit, b *Block) int {
	if !in.Marker {
		return -1
	}
	edits = edits[in.EditFrom:in.EditTo]
	for i := range edits {
		j := i
		if !in.Upsert {
			j = len(edits) - 1 - i
		}
		if e := edits[j]; e.Kind > Updated && !(e.Kind == Argument && b.Explicit != nil && b.Explicit[e.Ref]) {
			return j
		}
	}
	return -1
}
