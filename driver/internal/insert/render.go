package insert

import (
	"encoding/binary"
	"encoding/hex"
	"math/bits"
	"strconv"
	"unsafe"
)

// An edit replaces text[pos:end] of a user's text. Edits stand in text order;
// several may insert at one position.
type edit struct {
	pos, end int32
	ref      int32 // always, filled, updated: index in Plan.texts; argument: index in Insert.ArgKeys; key…: placeholders before it
	kind     editKind
}

type editKind uint8

const (
	always   editKind = iota // a fixed text
	filled                   // a fixed text, where the statement is filled
	updated                  // likewise, or where Insert.OwnMarker is set
	key                      // a key
	keyComma                 // a key after a comma
	argument                 // a placeholder that may be a key
)

type span struct{ from, to int }

func (r *reader) edit(kind editKind, pos, end, ref int) {
	r.edits = append(r.edits, edit{int32(pos), int32(end), int32(ref), kind})
}

func (r *reader) insertText(kind editKind, pos int, text string) {
	r.replaceText(kind, pos, pos, text)
}

func (r *reader) replaceText(kind editKind, pos, end int, text string) {
	r.edit(kind, pos, end, len(r.texts))
	r.texts = append(r.texts, text)
}

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
		k, marked := 0, in.marked(p.edits, block) // k ids were used
		for j, e := range p.edits[in.editSpan.from:in.editSpan.to] {
			if e.kind == argument && block.N > 0 && j != marked {
				t.place(in.ArgKeys[e.ref].Arg, i, e.ref, placeArgument)
				if block.Explicit == nil || !block.Explicit[e.ref] {
					k++
				}
				continue // stays a placeholder, whatever its value is
			}
			if block.N == 0 && e.kind != always && !(e.kind == updated && in.OwnMarker) {
				continue
			}
			b = append(b, p.text[last:e.pos]...)
			last = int(e.end)
			switch e.kind {
			case always, filled, updated:
				b = append(b, p.texts[e.ref]...)
				continue
			case keyComma:
				b = append(b, ", "...)
			}
			switch {
			case j == marked:
				b = p.marker(b, in, i, e, block, literals, t)
			case literals:
				b = in.Table.appendID(b, block, k)
				if t != nil {
					t.place(int(e.ref), i, 0, placeNothing)
				}
			default:
				b = append(b, '?')
				t.place(int(e.ref), i, 0, placeKey)
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
func (p *Plan) marker(b []byte, in *Insert, i int, e edit, block *Block, literals bool, t *Template) []byte {
	b = append(b, markerOpen...)
	at := int(e.ref)
	switch {
	case e.kind == argument:
		at = in.ArgKeys[e.ref].Arg
		b = append(b, '?')
		t.place(at, i, e.ref, placeMarker)
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
func (f *findings) fixedSize(text string) int {
	n := len(text) + len(f.Inserts)*len(markerOpen+")+")
	for _, inserted := range f.texts {
		n += len(inserted)
	}
	return n
}

// notFilled is no edit either: the statement gets no ids.
const notFilled = -2

// marked returns which of a statement's edits carries the marker, -1 for none, or
// notFilled.
func (in *Insert) marked(edits []edit, b *Block) int {
	switch {
	case b.N == 0:
		return notFilled
	case b.Explicit == nil:
		return in.allMarked
	}
	return in.markedAmong(edits, b)
}

// markedAmong looks for the edit that carries the marker where ids are given, -1 for none.
func (in *Insert) markedAmong(edits []edit, b *Block) int {
	if !in.Marker {
		return -1
	}
	edits = edits[in.editSpan.from:in.editSpan.to]
	for i := range edits {
		j := i
		if !in.Upsert {
			j = len(edits) - 1 - i
		}
		if e := edits[j]; e.kind > updated && !(e.kind == argument && b.Explicit != nil && b.Explicit[e.ref]) {
			return j
		}
	}
	return -1
}
