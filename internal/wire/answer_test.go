package wire

import (
	"bytes"
	"math"
	"reflect"
	"testing"
)

func TestOKIsReadAndWritten(t *testing.T) {
	for _, id := range []uint64{0, 1, 250, 251, 255, 1<<16 - 1, 1 << 16, 1<<24 - 1, 1 << 24, math.MaxInt64, math.MaxUint64} {
		want := OK{Affected: id / 2, ID: id, Status: Autocommit, Warnings: 7, Tail: []byte("Records: 2")}
		p := want.Append(nil)
		got, err := ParseOK(p)
		want.StatusAt = got.StatusAt
		if err != nil || !reflect.DeepEqual(got, want) || p[got.StatusAt] != Autocommit {
			t.Errorf("ParseOK() = %+v, %v; want %+v", got, err, want)
		}
		for n := range got.StatusAt + 4 {
			if _, err := ParseOK(p[:n]); err == nil {
				t.Errorf("ParseOK() of the first %d bytes for id %d: no error, want one", n, id)
			}
		}
	}
}

// schema is an OK of a server with a change of the session.
const schema = "\x00\x00\x00\x02@\x00\x00\x00\a\x01\x05\x04capf"

func TestInfoSplitsMessageAndChanges(t *testing.T) {
	ok, err := ParseOK([]byte(schema))
	if err != nil {
		t.Fatal(err)
	}
	info, changes := ok.Info(SessionTrack)
	if len(info) != 0 || string(changes) != "\x01\x05\x04capf" {
		t.Errorf("Info() = %q, %q; want no text and the change of the schema", info, changes)
	}
	ok, err = ParseOK([]byte("\x00\x02\x01\x02\x00\x00\x00&Records: 2  Duplicates: 0  Warnings: 0"))
	if info, changes := ok.Info(0); err != nil || string(info) != "Records: 2  Duplicates: 0  Warnings: 0" || changes != nil {
		t.Errorf("Info() = %q, %q, error %v; want the text and no changes", info, changes, err)
	}
	for _, caps := range []uint32{0, SessionTrack} {
		for _, info := range []string{"", "Rows matched: 1", string(make([]byte, 300))} {
			for _, changes := range []string{"", "\x01\x05\x04capf", string(make([]byte, 70_000))} {
				ok.SetInfo(caps, []byte(info), []byte(changes))
				read, err := ParseOK(ok.Append(nil))
				if caps == 0 {
					changes = ""
				}
				if info2, changes2 := read.Info(caps); err != nil || string(info2) != info || string(changes2) != changes || (read.Status&StateChanged != 0) != (changes != "") {
					t.Errorf("Info() with capabilities %#x = %.20q, %.20q, status %#x, error %v; want %.20q, %.20q", caps, info2, changes2, read.Status, err, info, changes)
				}
			}
		}
	}
}

func TestGTIDsAreKept(t *testing.T) {
	const (
		first  = "\x03\x07\x00\x05aaa:1"
		second = "\x03\x07\x00\x05bbb:2"
	)
	for changes, want := range map[string]string{
		"":                                     "",
		first:                                  first,
		"\x01\x05\x04capf" + first:             first,
		first + "\x01\x05\x04capf" + second:    first + second,
		first + "\x03\x20short":                first,
		"\x02\x01\x31":                         "",
		"\x03\xfe\xff\xff\xff\xff\xff\xff\xff": "",
	} {
		if got := FilterGTIDs([]byte(changes)); string(got) != want {
			t.Errorf("FilterGTIDs(%q) = %q, want %q", changes, got, want)
		}
	}
}

func TestErrIsReadAndWritten(t *testing.T) {
	for payload, want := range map[string]Err{
		"\xff\x1e\x04#42S22Unknown column": {Number: 1054, State: [5]byte([]byte("42S22")), Message: "Unknown column"},
		"\xff\x10\x04Too many connections": {Number: 1040, Message: "Too many connections"},
		"\xff\x10\x04":                     {Number: 1040},
	} {
		got, err := ParseErr([]byte(payload))
		if err != nil || got != want || string(got.Append(nil)) != payload {
			t.Errorf("ParseErr(%q) = %+v, %v, written as %q; want %+v", payload, got, err, got.Append(nil), want)
		}
	}
	for _, payload := range []string{"", "\xff", "\xff\x10", "\xff\x10\x04#42"} {
		if e, err := ParseErr([]byte(payload)); err == nil {
			t.Errorf("ParseErr(%q) = %+v, want an error", payload, e)
		}
	}
}

func TestPreparedOKIsRead(t *testing.T) {
	got, err := ParsePreparedOK([]byte("\x00:\x01\x00\x00\x02\x00\x03\x00\x00\x00\x00"))
	if want := (PreparedOK{StmtID: 0x13a, Columns: 2, Params: 3}); err != nil || got != want {
		t.Errorf("ParsePreparedOK() = %+v, %v; want %+v", got, err, want)
	}
	if _, err := ParsePreparedOK([]byte("\x00:\x01\x00\x00\x02\x00\x03")); err == nil {
		t.Error("ParsePreparedOK() of a short packet: no error, want one")
	}
	if got := NewCloseCommand(0x13a); string(got) != "\x19:\x01\x00\x00" {
		t.Errorf("NewCloseCommand() = %q, want statement 0x13a", got)
	}
}

const mariaColumn = "\x03def\x04capf\x01t\x01t\x02id\x02id\x00\f?\x00\x14\x00\x00\x00\b\x03B\x00\x00\x00"

func TestParseColumnNameReadsName(t *testing.T) {
	if name, err := ParseColumnName([]byte(mariaColumn)); err != nil || name != "id" {
		t.Errorf("ParseColumnName() = %q, %v; want id", name, err)
	}
	if name, err := ParseColumnName([]byte(mariaColumn[:14])); err == nil {
		t.Errorf("ParseColumnName() of a part = %q, want an error", name)
	}
}

func TestParseRowValueReadsEachValue(t *testing.T) {
	row := []byte("\x011\xfb\x00\xfc\x01\x00x")
	var got []any
	for len(row) > 0 {
		value, rest, err := ParseRowValue(row)
		if err != nil {
			t.Fatal(err)
		}
		got, row = append(got, value), rest
	}
	if want := []any{[]byte("1"), nil, []byte{}, []byte("x")}; !reflect.DeepEqual(got, want) {
		t.Errorf("values = %q, want %q", got, want)
	}
	for _, bad := range []string{"", "\x021", "\xfc\x01", "\xff", "\xfe\xff\xff\xff\xff\xff\xff\xff\xff"} {
		if value, _, err := ParseRowValue([]byte(bad)); err == nil {
			t.Errorf("ParseRowValue(%q) = %q, want an error", bad, value)
		}
	}
}

// FuzzAnswers: no bytes of a server cause a panic, and parsed packets are encoded again unchanged.
func FuzzAnswers(f *testing.F) {
	for _, seed := range []string{schema, mariaColumn, "\xff\x1e\x04#42S22Unknown column", "\x00:\x00\x00\x00\x00\x00\x03\x00\x00\x00\x00", "\xfe\x00\x00\"\x00", "\x011\x01x"} {
		f.Add([]byte(seed), []byte("Records: 1"), []byte("\x03\x07\x00\x05aaa:1"))
	}
	f.Fuzz(func(t *testing.T, p, info, changes []byte) {
		if e, err := ParseErr(p); err == nil && len(p) > 0 && p[0] == FirstErr {
			if again, err := ParseErr(e.Append(nil)); err != nil || again != e {
				t.Errorf("error read again = %+v, %v; want %+v", again, err, e)
			}
		}
		took := allocated(func() {
			ParseErr(p)
			ParseOK(p)
			ParsePreparedOK(p)
			ParseColumnName(p)
			FilterGTIDs(p)
		})
		if took > uint64(256<<10+20*len(p)) {
			t.Errorf("%d bytes were allocated for a packet of %d, want at most %d", took, len(p), 256<<10+20*len(p))
		}
		if value, rest, err := ParseRowValue(p); err == nil && len(rest) >= len(p) {
			t.Errorf("ParseRowValue(%q) = %q, rest %q; want a shorter rest", p, value, rest)
		}
		if n, rest, err := ParseLenEnc(p); err == nil {
			if again, _, err := ParseLenEnc(append(AppendLenEnc(nil, n), rest...)); err != nil || again != n {
				t.Errorf("number read again = %d, %v; want %d", again, err, n)
			}
		}
		ok, err := ParseOK(p)
		if err != nil {
			return
		}
		if again, err := ParseOK(ok.Append(nil)); err != nil || again.ID != ok.ID || again.Affected != ok.Affected || !bytes.Equal(again.Tail, ok.Tail) {
			t.Errorf("OK read again = %+v, %v; want %+v", again, err, ok)
		}
		for _, caps := range []uint32{0, SessionTrack} {
			ok.Info(caps)
			ok.SetInfo(caps, info, changes)
			read, err := ParseOK(ok.Append(nil))
			if info2, changes2 := read.Info(caps); err != nil || !bytes.Equal(info, info2) || caps != 0 && !bytes.Equal(changes, changes2) {
				t.Errorf("info read again = %q, %q, %v; want %q, %q", info2, changes2, err, info, changes)
			}
		}
	})
}
