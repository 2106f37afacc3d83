package insert

import (
	"strconv"
	"unsafe"
)

// Text renders the text with the ids as literals, for texts that are executed
// without arguments.
func (p *Plan) Text(fills []Fill) string {
	if !p.changes(fills) {
		return p.text
	}
	return p.literal(fills)
}

// changes says whether the text differs from the user's.
func (p *Plan) changes(fills []Fill) bool {
	for i := range p.Inserts {
		if fills[i].N > 0 || p.Inserts[i].Wraps || p.Inserts[i].Select != nil {
			return true
		}
	}
	return false
}

const (
	maxDigits = len("9223372036854775807")
	markOpen  = "LAST_INSERT_ID("
)

// literal renders the text with the ids as literals.
func (p *Plan) literal(fills []Fill) string {
	size := len(p.text)
	for i := range p.Inserts {
		in := &p.Inserts[i]
		size += len(markOpen) + 2*maxDigits
		for _, e := range p.edits[in.edits.from:in.edits.to] {
			if e.kind <= filled {
				size += len(p.texts[e.ref])
			} else {
				size += len(", ") + maxDigits
			}
		}
		if in.Select != nil {
			size += in.Select.size()
		}
	}
	b := make([]byte, 0, size)
	last := 0
	for i := range p.Inserts {
		in, f := &p.Inserts[i], &fills[i]
		id, mark := f.First, p.mark(in, f)
		for j, e := range p.edits[in.edits.from:in.edits.to] {
			if !in.takes(e, f) {
				continue
			}
			b = append(b, p.text[last:e.pos]...)
			last = int(e.end)
			switch e.kind {
			case always, filled:
				b = append(b, p.texts[e.ref]...)
				continue
			case argument: // replaced among the arguments, where there are any
				id++
				if j != mark {
					b = append(b, '?')
					continue
				}
				b = append(b, markOpen...)
				b = append(b, "?)"...)
				b = in.appendDistance(b, f)
				continue
			case keyComma:
				b = append(b, ", "...)
			case keySpace:
				b = append(b, ' ')
			case numbered:
				b = in.Select.number(b, f)
				continue
			}
			if j != mark {
				b = strconv.AppendInt(b, id, 10)
				id++
				continue
			}
			b = append(b, markOpen...)
			b = strconv.AppendInt(b, f.First, 10)
			b = append(b, ')')
			b = in.appendDistance(b, f)
			id++
		}
	}
	b = append(b, p.text[last:]...)
	return unsafe.String(unsafe.SliceData(b), len(b))
}

// takes says whether an edit is made under a fill.
func (in *Insert) takes(e edit, f *Fill) bool {
	switch e.kind {
	case always:
		return true
	case argument:
		return f.N > 0 && (f.Explicit == nil || !f.Explicit[e.ref])
	}
	return f.N > 0 || in.Select != nil
}

// mark returns which of a statement's edits carries the mark, -1 for none.
func (p *Plan) mark(in *Insert, f *Fill) int {
	if !in.Mark || f.N == 0 || in.Select != nil {
		return -1
	}
	edits := p.edits[in.edits.from:in.edits.to]
	if in.Upsert {
		for j, e := range edits {
			if e.kind > filled && in.takes(e, f) {
				return j
			}
		}
		return -1
	}
	for j := len(edits) - 1; j >= 0; j-- {
		if e := edits[j]; e.kind > filled && in.takes(e, f) {
			return j
		}
	}
	return -1
}

// appendDistance writes what the mark adds to the first id.
func (in *Insert) appendDistance(b []byte, f *Fill) []byte {
	if in.Upsert || f.N <= 1 {
		return b
	}
	b = append(b, '+')
	return strconv.AppendInt(b, int64(f.N-1), 10)
}
