package proxy

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"reflect"
	"slices"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/leafsql/leafsql/internal/wire"
)

// Packets of answers.
const (
	anOK      = "\x00\x01\x02\x02\x00\x00\x00"
	moreOK    = "\x00\x01\x02\x0a\x00\x00\x00"
	trackedOK = "\x00\x00\x00\x02\x40\x00\x00\x00\x07\x01\x05\x04shop"
	anErr     = "\xff\x1e\x04#42S22Unknown column"
	anEOF     = "\xfe\x00\x00\x02\x00"
	moreEOF   = "\xfe\x00\x00\x0a\x00"
	cursorEOF = "\xfe\x00\x00\x42\x00"
	outEOF    = "\xfe\x00\x00\x02\x10"
	rowsOK    = "\xfe\x00\x00\x02\x00\x00\x00"
	moreRows  = "\xfe\x00\x00\x0a\x00\x00\x00"
	column    = "\x03def\x00\x00\x00\x01?\x00\f?\x00\x00\x00\x00\x00\x06\x80\x00\x00\x00\x00"
	aRow      = "\x01a\xfb"
	preparedY = "\x00\x01\x00\x00\x00\x01\x00\x01\x00\x00\x00\x00"
	aFile     = "\xfbrows.csv"
)

// answers has an answer of each kind, for clients with and without DeprecateEOF.
var answers = []struct {
	from, flags byte
	packets     []string
}{
	{0, 0, []string{anOK}},
	{0, 0, []string{anErr}},
	{0, 0, []string{trackedOK}},
	{0, 1, []string{trackedOK}},
	{0, 0, []string{"\x02", column, column, anEOF, aRow, aRow, anEOF}},
	{0, 1, []string{"\x02", column, column, aRow, aRow, rowsOK}},
	{0, 0, []string{"\x01", column, anEOF, aRow, anErr}},
	{0, 0, []string{moreOK, "\x01", column, anEOF, aRow, moreEOF, anOK}},
	{0, 1, []string{moreOK, "\x01", column, aRow, moreRows, anErr}},
	{0, 4, []string{"\x01", column, cursorEOF}},
	{0, 0, []string{"\x01", column, outEOF, aRow, anEOF, anOK}},
	{0, 2, []string{anOK}},
	{0, 2, []string{"\x01", column, anEOF, anEOF}},
	{0, 3, []string{"\x01", column, aRow, rowsOK}},
	{0, 0, []string{aFile, anOK}},
	{0, 1, []string{aFile, anErr}},
	{1, 0, []string{aRow, aRow, anEOF}},
	{1, 1, []string{aRow, rowsOK}},
	{1, 0, []string{column, anErr}},
	{2, 0, []string{preparedY, column, anEOF, column, anEOF}},
	{2, 1, []string{preparedY, column, column}},
	{2, 0, []string{anErr}},
	{3, 0, []string{"Uptime: 1"}},
}

// relayResult is the result of relaying an answer.
type relayResult struct {
	client, server []byte // written bytes
	unread         int
	status         uint16
	failure        string
	stmt           wire.PreparedOK
	err            error
}

// relayInPieces relays an answer that the server sends in pieces. file is the client's answer to LOCAL INFILE.
// flags is a sum of 1 (DeprecateEOF), 2 (another answer follows) and 4 (an execution).
func relayInPieces(from, flags byte, sent, file []byte, way []int) (r relayResult) {
	server, conn := &pieceConn{unread: slices.Clone(sent), lengths: way}, &pieceConn{unread: file, lengths: way}
	b := &backend{frameConn: server.frameConn(), client: &client{frameConn: conn.frameConn()}}
	b.client.seq = 7
	if flags&1 != 0 {
		b.caps = wire.DeprecateEOF
	}
	a := answer{state: []state{head, rows, preparedHead, anyPacket}[from%4], more: flags&2 != 0, isExecution: flags&4 != 0}
	_, r.err = b.relay(&a)
	r.client, r.server, r.unread, r.status, r.stmt = conn.written, server.written, len(server.unread)+len(b.buffered()), b.status, a.stmt
	if failure, ok := a.failure.(*mysql.MySQLError); ok {
		r.failure = fmt.Sprint(failure.Number, failure.SQLState)
	}
	b.returnBuffer()
	b.client.returnBuffer()
	return r
}

// FuzzRelay: no bytes of a server cause a panic. In pieces of any length, an answer ends at the same byte and
// is passed on unchanged, except for the numbers of its frames.
func FuzzRelay(f *testing.F) {
	for _, a := range answers {
		f.Add(a.from, a.flags, append(encodeFrames(a.packets...), "behind it"...), encodeFrames("1\tone\n", "", "\x03SELECT 1"), []byte{1, 2, 5})
	}
	f.Add(byte(0), byte(0), append(encodeFrames("\x01", column, anEOF, string(make([]byte, 40_000)), anEOF), 0), []byte(nil), []byte{100, 7})
	f.Fuzz(func(t *testing.T, from, flags byte, sent, file, cuts []byte) {
		want := relayInPieces(from, flags, sent, file, nil)
		if want.err == nil {
			checkFrames(t, sent[:len(sent)-want.unread], want.client, flags)
		}
		for _, way := range cutWays(len(sent), cuts) {
			got := relayInPieces(from, flags, sent, file, way)
			if (got.err == nil) != (want.err == nil) {
				t.Fatalf("relay in pieces %v: error %v, want %v as without pieces", way, got.err, want.err)
			}
			if want.err != nil { // the connection ends; bytes before the error may have been passed on
				n := min(len(got.client), len(want.client))
				if !bytes.Equal(got.client[:n], want.client[:n]) {
					t.Fatalf("relay in pieces %v: sent to the client:\n%q\nwant as without pieces:\n%q", way, got.client, want.client)
				}
				continue
			}
			if !reflect.DeepEqual(got, want) {
				t.Fatalf("relay in pieces %v = %+v\nwant as without pieces: %+v", way, got, want)
			}
		}
	})
}

// checkFrames compares the relayed frames with those sent: they must be the same, with consecutive numbers.
func checkFrames(t *testing.T, sent, got []byte, flags byte) {
	t.Helper()
	if len(got) != len(sent) {
		t.Fatalf("relayed bytes = %d, want %d", len(got), len(sent))
	}
	for seq, file := byte(7), false; len(sent) > 0; seq++ {
		n := wire.HeaderLen + int(binary.LittleEndian.Uint32(sent)&wire.MaxFrame)
		if file { // the client's frames of the file are numbered too
			seq = got[3]
		}
		if !bytes.Equal(got[:3], sent[:3]) || got[3] != seq {
			t.Fatalf("header of the relayed frame %q = % x, want % x with the number %d", sent[:n], got[:wire.HeaderLen], sent[:3], seq)
		}
		if differ := countDifferent(sent[wire.HeaderLen:n], got[wire.HeaderLen:n]); differ > 0 && (flags&2 == 0 || differ > 1) {
			t.Fatalf("relayed frame = %q, want %q", got[:n], sent[:n])
		}
		file = n > wire.HeaderLen && sent[wire.HeaderLen] == wire.FirstLocalInfile
		sent, got = sent[n:], got[n:]
	}
}

// countDifferent returns the number of bytes that differ.
func countDifferent(a, b []byte) (n int) {
	for i := range a {
		if a[i] != b[i] {
			n++
		}
	}
	return n
}

// TestAnswersEndAfterTheirLastPacket: an answer of each kind ends after its last packet.
func TestAnswersEndAfterTheirLastPacket(t *testing.T) {
	for _, a := range answers {
		r := relayInPieces(a.from, a.flags, append(encodeFrames(a.packets...), encodeFrames("behind it")...), encodeFrames("1\tone\n", ""), nil)
		if r.err != nil || r.unread != wire.HeaderLen+len("behind it") {
			t.Errorf("from %d, flags %d, packets %q: unread bytes = %d, %v, want those of the frame after the answer, %d", a.from, a.flags, a.packets, r.unread, r.err, wire.HeaderLen+len("behind it"))
		}
	}
}
