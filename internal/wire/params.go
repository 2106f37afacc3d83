package wire

import (
	"encoding/binary"
	"math"
	"slices"
)

// A Param is one argument of a prepared statement, or one attribute of a query, as the
// client sent it.
type Param struct {
	Type  byte // MYSQL_TYPE_…
	Flags byte // 0x80: unsigned
	Name  []byte
	Null  bool
	Raw   []byte // the value in the wire's encoding; nil if Null

	Long []byte // the value without a length, if the client sent it before in pieces; otherwise nil

	Indicator byte // in a Bulk: 0: a value; 1: NULL; 2: the column's default; 3: the column is left unchanged, or in an INSERT gets its default
}

const unsigned = 0x80

const (
	typeTiny     = 1
	typeShort    = 2
	typeLong     = 3
	typeFloat    = 4
	typeDouble   = 5
	typeNull     = 6
	typeDateTime = 12
	typeLongLong = 8
	typeInt24    = 9
	typeYear     = 13
)

// TypeString is the type of a StringParam.
const TypeString = 254

// valueWidth returns the length of a type's values: 0 for no value, -1 if the value begins with its length
// in one byte, -2 if it begins with its length as a length-encoded integer.
func valueWidth(typ byte) int {
	switch typ {
	case typeNull:
		return 0
	case typeTiny:
		return 1
	case typeShort, typeYear:
		return 2
	case typeLong, typeInt24, typeFloat:
		return 4
	case typeLongLong, typeDouble:
		return 8
	case 7, 10, 11, typeDateTime, 17, 18, 19: // dates and times
		return -1
	}
	return -2
}

// readValue reads a value of a type.
func (c *cursor) readValue(typ byte) []byte {
	begin := c.p
	switch n := valueWidth(typ); n {
	case -1:
		c.take(uint64(c.byte()))
	case -2:
		c.lenEncBytes()
	default:
		c.take(uint64(n))
	}
	if c.isMalformed {
		return nil
	}
	n := len(begin) - len(c.p)
	return begin[:n:n]
}

// KeyValue returns the value as a possible key: an int64, a uint64, a float64, bytes, or nil for
// NULL and for a column's default. It returns struct{}{} for a date or time, which cannot be a key.
func (p Param) KeyValue() any {
	switch {
	case p.Null || p.Type == typeNull || p.Indicator != 0:
		return nil
	case p.Long != nil:
		return p.Long
	}
	switch valueWidth(p.Type) {
	case -2:
		b, _, err := ParseRowValue(p.Raw)
		if err != nil {
			return p.Raw
		}
		return b
	case -1:
		return struct{}{}
	}
	c, shift := cursor{p: p.Raw}, 64-8*len(p.Raw)
	n := c.uint(uint64(len(p.Raw)))
	switch {
	case p.Type == typeFloat:
		return float64(math.Float32frombits(uint32(n)))
	case p.Type == typeDouble:
		return math.Float64frombits(n)
	case p.Flags&unsigned != 0:
		return n
	}
	return int64(n<<shift) >> shift
}

// IntParam returns an argument for an internal statement.
func IntParam(n int64) Param {
	return Param{Type: typeLongLong, Raw: binary.LittleEndian.AppendUint64(nil, uint64(n))}
}

// StringParam returns an argument for an internal statement.
func StringParam(s []byte) Param {
	return Param{Type: TypeString, Raw: append(AppendLenEnc(nil, uint64(len(s))), s...)}
}

// types parses the types of parameters.
func (c *cursor) types(params []Param, named bool) {
	for i := range params {
		t := c.uint16()
		params[i].Type, params[i].Flags = byte(t), byte(t>>8)
		if named {
			params[i].Name = c.lenEncBytes()
		}
	}
}

// maxParams is the largest number of parameters of a statement.
const maxParams = math.MaxUint16

// params parses the parameters of a command: bitmap, types and values. If the client sends no types, the given types
// of an earlier execution are used. long has the values that were sent before.
func (c *cursor) params(n int, named bool, types []Param, long map[int][]byte) []Param {
	nulls := c.take(uint64(n+7) / 8)
	bound := c.byte() != 0
	if c.isMalformed || bound && len(c.p) < 2*n || !bound && len(types) != n {
		c.isMalformed = true
		return nil
	}
	params := slices.Clone(types)
	if bound {
		params = make([]Param, n)
		c.types(params, named)
	}
	if c.isMalformed {
		return nil
	}
	for i := range params {
		p := &params[i]
		value, isLong := long[i]
		null := nulls[i/8]&(1<<(i%8)) != 0
		switch {
		case p.Type == typeNull && (isLong || !null): // servers refuse it
			c.isMalformed = true
			return nil
		case isLong: // even if the client marks it as NULL
			p.Long = value
		case null:
			p.Null = true
		default:
			p.Raw = c.readValue(p.Type)
		}
	}
	return params
}

// An Execute is COM_STMT_EXECUTE.
type Execute struct {
	Stmt   uint32
	Flags  byte // the cursor's kind; 0x08: attributes may follow the arguments
	Params []Param
	Extra  []Param // attributes of the query
}

const paramCountAvailable = 0x08

// ParseExecute parses COM_STMT_EXECUTE, including the command byte, for a statement with n
// parameters. types are the last types that were bound. If attrs is set, for the capability
// QueryAttrs, attributes may follow the arguments. long has the values that were sent before. The Params
// refer to the payload.
func ParseExecute(p []byte, n int, attrs bool, types []Param, long map[int][]byte) (Execute, error) {
	var e Execute
	c := cursor{p: p}
	c.byte()
	e.Stmt = c.uint32()
	e.Flags = c.byte()
	c.uint32() // iterations, always 1
	total := n
	if attrs && (n > 0 || e.Flags&paramCountAvailable != 0) {
		count := c.lenEnc()
		if count > maxParams || int(count) < n {
			return e, ErrMalformed
		}
		total = int(count)
	}
	if total > 0 {
		all := c.params(total, attrs, types, long)
		if c.isMalformed {
			return e, ErrMalformed
		}
		e.Params, e.Extra = all[:n:n], all[n:]
	}
	return e, c.err()
}

// Append appends the packet's payload. If attrs is set, for the capability QueryAttrs, the
// payload contains the attributes and the number of parameters.
func (e Execute) Append(b []byte, attrs bool) []byte {
	b = append(b, ComStmtExecute)
	b = binary.LittleEndian.AppendUint32(b, e.Stmt)
	b = append(b, e.Flags&^paramCountAvailable, 1, 0, 0, 0)
	all := e.Params
	if attrs {
		b[len(b)-5] |= paramCountAvailable
		all = slices.Concat(e.Params, e.Extra)
		b = AppendLenEnc(b, uint64(len(all)))
	}
	if len(all) == 0 {
		return b
	}
	nulls := len(b)
	b = append(b, make([]byte, (len(all)+7)/8)...)
	b = append(b, 1)
	for i, p := range all {
		if p.Null {
			b[nulls+i/8] |= 1 << (i % 8)
		}
		if p.Long != nil && valueWidth(p.Type) != -2 {
			p.Type = TypeString // the value is encoded like a string
		}
		b = append(b, p.Type, p.Flags)
		if attrs {
			b = append(AppendLenEnc(b, uint64(len(p.Name))), p.Name...)
		}
	}
	for _, p := range all {
		if p.Long != nil {
			b = append(AppendLenEnc(b, uint64(len(p.Long))), p.Long...)
		} else {
			b = append(b, p.Raw...)
		}
	}
	return b
}

// FindQueryText returns the offset of the text in COM_QUERY, including the command byte. If attrs
// is set, attributes of the query precede the text.
func FindQueryText(p []byte, attrs bool) (int, error) {
	c := cursor{p: p}
	c.byte()
	if attrs {
		n := c.lenEnc()
		c.lenEnc() // sets of parameters, always 1
		if n > maxParams {
			return 0, ErrMalformed
		}
		if n > 0 {
			c.params(int(n), true, nil, nil)
		}
	}
	return len(p) - len(c.p), c.err()
}

// NoAttributes precedes the text of a COM_QUERY without attributes, if both sides have the capability
// QueryAttrs.
var NoAttributes = []byte{0, 1}
