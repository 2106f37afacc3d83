package wire

import "encoding/binary"

// First bytes of packets that are not rows.
const (
	FirstOK          = 0x00
	FirstLocalInfile = 0xfb
	FirstEOF         = 0xfe // with DeprecateEOF, also the first byte of an OK that ends rows
	FirstErr         = 0xff
)

// An OK is the packet that ends an answer without rows. With the capability DeprecateEOF it also ends rows.
type OK struct {
	Affected, ID     uint64
	Status, Warnings uint16
	Tail             []byte // the info and, with StateChanged, the changes of the session

	StatusAt int // offset of the status in the payload
}

// ParseOK parses the numbers at the front of an OK. The rest of the payload may be missing.
func ParseOK(p []byte) (OK, error) {
	var ok OK
	c := cursor{p: p}
	c.byte()
	ok.Affected = c.lenEnc()
	ok.ID = c.lenEnc()
	ok.StatusAt = len(p) - len(c.p)
	ok.Status = c.uint16()
	ok.Warnings = c.uint16()
	ok.Tail = c.p
	return ok, c.err()
}

// Append appends the packet's payload.
func (ok OK) Append(b []byte) []byte {
	b = append(b, FirstOK)
	b = AppendLenEnc(b, ok.Affected)
	b = AppendLenEnc(b, ok.ID)
	b = binary.LittleEndian.AppendUint16(b, ok.Status)
	b = binary.LittleEndian.AppendUint16(b, ok.Warnings)
	return append(b, ok.Tail...)
}

// Info returns the text of an OK and, with SessionTrack, the changes of the session, for a
// connection with these capabilities.
func (ok OK) Info(caps uint32) (info, changes []byte) {
	c := cursor{p: ok.Tail}
	info = c.lenEncBytes()
	if caps&SessionTrack != 0 && ok.Status&StateChanged != 0 && !c.isMalformed {
		changes = c.lenEncBytes()
	}
	return info, changes
}

// SetInfo sets the text and the changes.
func (ok *OK) SetInfo(caps uint32, info, changes []byte) {
	ok.Status &^= StateChanged
	ok.Tail = nil
	if hasChanges := caps&SessionTrack != 0 && len(changes) > 0; hasChanges || len(info) > 0 {
		ok.Tail = append(AppendLenEnc(nil, uint64(len(info))), info...)
		if hasChanges {
			ok.Status |= StateChanged
			ok.Tail = append(AppendLenEnc(ok.Tail, uint64(len(changes))), changes...)
		}
	}
}

// trackGTID is the type of a session change that contains the GTID of a committed transaction.
const trackGTID = 3

// FilterGTIDs returns the changes that contain GTIDs of committed transactions, in their encoded form.
func FilterGTIDs(changes []byte) (gtids []byte) {
	c := cursor{p: changes}
	for len(c.p) > 0 {
		begin := c.p
		kind := c.byte()
		c.lenEncBytes()
		if c.isMalformed {
			break
		}
		if kind == trackGTID {
			gtids = append(gtids, begin[:len(begin)-len(c.p)]...)
		}
	}
	return gtids
}

// EOFStatusAt is the offset of the status in an EOF packet of five bytes.
const EOFStatusAt = 3

// An Err is a server's error packet.
type Err struct {
	Number  uint16
	State   [5]byte // SQLSTATE; zeros in errors before the login, which have no SQLSTATE
	Message string
}

// ParseErr parses an error packet.
func ParseErr(p []byte) (Err, error) {
	var e Err
	c := cursor{p: p}
	c.byte()
	e.Number = c.uint16()
	if len(c.p) > 0 && c.p[0] == '#' {
		c.byte()
		copy(e.State[:], c.take(5))
	}
	e.Message = string(c.p)
	return e, c.err()
}

// Append appends the packet's payload.
func (e Err) Append(b []byte) []byte {
	b = append(b, FirstErr, byte(e.Number), byte(e.Number>>8))
	if e.State != [5]byte{} {
		b = append(append(b, '#'), e.State[:]...)
	}
	return append(b, e.Message...)
}

// A PreparedOK is the first packet of the answer to COM_STMT_PREPARE.
type PreparedOK struct {
	StmtID          uint32
	Columns, Params uint16
}

// ParsePreparedOK parses a PreparedOK.
func ParsePreparedOK(p []byte) (PreparedOK, error) {
	c := cursor{p: p}
	c.byte()
	ok := PreparedOK{c.uint32(), c.uint16(), c.uint16()}
	return ok, c.err()
}

// ParseColumnName returns the name in a column definition.
func ParseColumnName(p []byte) (string, error) {
	c := cursor{p: p}
	for range 4 { // catalog, database, table, original table
		c.lenEncBytes()
	}
	name := c.lenEncBytes()
	return string(name), c.err()
}

// NewCloseCommand returns the command COM_STMT_CLOSE.
func NewCloseCommand(id uint32) []byte {
	return binary.LittleEndian.AppendUint32([]byte{ComStmtClose}, id)
}
