package wire

import "encoding/binary"

// A Bulk is MariaDB's COM_STMT_BULK_EXECUTE: one statement executed for many rows. A copy of a Bulk reads the
// rows independently.
type Bulk struct {
	Stmt  uint32
	Types []Param // type and flags of each argument
	Rows  int

	rest cursor
	row  []Param
}

// bulkSendTypes is the flag for types before the rows. Other flags, such as the flag that requests the id of each
// row, are not sent to the server.
const bulkSendTypes = 1 << 7

// ParseBulk parses COM_STMT_BULK_EXECUTE, including the command byte, for a statement with n
// parameters. types are the last types that were bound. The Bulk refers to the payload.
func ParseBulk(p []byte, n int, types []Param) (Bulk, error) {
	b := Bulk{Types: types}
	c := cursor{p: p}
	c.byte()
	b.Stmt = c.uint32()
	if c.uint16()&bulkSendTypes != 0 {
		if len(c.p) < 2*n {
			return b, ErrMalformed
		}
		b.Types = make([]Param, n)
		c.types(b.Types, false)
	}
	if c.isMalformed || len(b.Types) != n || n == 0 {
		return b, ErrMalformed
	}
	for b.rest = c; len(c.p) > 0; b.Rows++ {
		for _, t := range b.Types {
			if c.byte() == 0 {
				c.readValue(t.Type)
			}
		}
		if c.isMalformed {
			return b, ErrMalformed
		}
	}
	return b, nil
}

// Next returns the arguments of the next row, which must exist. They are valid until the next call of
// Next.
func (b *Bulk) Next() []Param {
	if b.row == nil {
		b.row = make([]Param, len(b.Types))
	}
	for i, t := range b.Types {
		p := Param{Type: t.Type, Flags: t.Flags, Indicator: b.rest.byte()}
		if p.Indicator == 0 {
			p.Raw = b.rest.readValue(t.Type)
		}
		b.row[i] = p
	}
	return b.row
}

// Append appends the command as it was parsed, with its types.
func (b *Bulk) Append(dst []byte) []byte {
	return append(AppendBulk(dst, b.Stmt, b.Types), b.rest.p...)
}

// AppendBulk appends a COM_STMT_BULK_EXECUTE up to its rows. Callers then append each argument of each row with
// AppendBulkValue.
func AppendBulk(b []byte, stmt uint32, types []Param) []byte {
	b = binary.LittleEndian.AppendUint32(append(b, ComStmtBulkExecute), stmt)
	b = binary.LittleEndian.AppendUint16(b, bulkSendTypes)
	for _, t := range types {
		b = append(b, t.Type, t.Flags)
	}
	return b
}

// AppendBulkValue appends an argument after AppendBulk.
func AppendBulkValue(b []byte, p Param) []byte { return append(append(b, p.Indicator), p.Raw...) }
