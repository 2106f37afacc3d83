package wire

import (
	"bytes"
	"fmt"
	"math"
	"reflect"
	"runtime/metrics"
	"strings"
	"testing"
)

// phpExecute has an INT, a DOUBLE and a BLOB that was sent before and is marked as NULL.
const phpExecute = "\x17:\x00\x00\x00\x00\x01\x00\x00\x00\x04\x01\b\x00\x05\x00\xfb\x00\a\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\xf8?"

func values(params []Param) (all []any) {
	for _, p := range params {
		all = append(all, p.KeyValue())
	}
	return all
}

func TestExecuteIsReadAndWritten(t *testing.T) {
	long := map[int][]byte{2: []byte("long")}
	e, err := ParseExecute([]byte(phpExecute), 3, false, nil, long)
	if err != nil || e.Stmt != 58 || !reflect.DeepEqual(values(e.Params), []any{int64(7), 1.5, []byte("long")}) {
		t.Fatalf("ParseExecute() = %+v, %v; want statement 58 with 7, 1.5 and long", e, err)
	}
	again, err := ParseExecute(e.Append(nil, false), 3, false, nil, nil)
	if err != nil || !reflect.DeepEqual(values(again.Params), []any{int64(7), 1.5, []byte("long")}) {
		t.Errorf("command read again = %+v, %v; want 7, 1.5 and long", again, err)
	}

	// The types are those of the previous execution.
	e, err = ParseExecute([]byte("\x179\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x02zz"), 1, false, []Param{{Type: 0xfd}}, nil)
	if err != nil || !reflect.DeepEqual(values(e.Params), []any{[]byte("zz")}) {
		t.Errorf("ParseExecute() = %+v, %v; want zz", e, err)
	}
	if e, err = ParseExecute([]byte("\x179\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x02zz"), 1, false, nil, nil); err == nil {
		t.Errorf("ParseExecute() without types = %+v, want an error", e)
	}
	const null = "\x179\x00\x00\x00\x00\x01\x00\x00\x00\x01\x01\x06\x00"
	if e, err = ParseExecute([]byte(null), 1, false, nil, nil); err != nil || !reflect.DeepEqual(values(e.Params), []any{nil}) {
		t.Errorf("ParseExecute() of NULL = %+v, %v; want NULL", e, err)
	}
	if e, err = ParseExecute([]byte(null), 1, false, nil, map[int][]byte{0: []byte("0")}); err == nil {
		t.Errorf("ParseExecute() of NULL in pieces = %+v, want an error", e)
	}
	if e, err = ParseExecute([]byte(strings.Replace(null, "\x01\x01\x06", "\x00\x01\x06", 1)), 1, false, nil, nil); err == nil {
		t.Errorf("ParseExecute() of a value of type NULL = %+v, want an error", e)
	}
	if e, err = ParseExecute([]byte("\x179\x00\x00\x00\x00\x01\x00\x00\x00"), 0, false, nil, nil); err != nil || len(e.Params) != 0 {
		t.Errorf("ParseExecute() without parameters = %+v, %v; want none", e, err)
	}
	for _, bit := range []byte{0, paramCountAvailable} {
		e, err = ParseExecute([]byte("\x179\x00\x00\x00"+string(bit)+"\x01\x00\x00\x00\x02\x00\x01\x08\x00\x01a\xfd\x00\x01b\x01\x00\x00\x00\x00\x00\x00\x00\x01x"), 1, true, nil, nil)
		if err != nil || !reflect.DeepEqual(values(e.Params), []any{int64(1)}) || len(e.Extra) != 1 || string(e.Extra[0].Name) != "b" {
			t.Errorf("ParseExecute() with an attribute, flag %d = %+v, %v; want 1 and the attribute b", bit, e, err)
		}
	}
	for n := range len(phpExecute) {
		if e, err := ParseExecute([]byte(phpExecute[:n]), 3, false, nil, long); err == nil {
			t.Errorf("ParseExecute() of %d bytes = %+v, want an error", n, e)
		}
	}
}

// TestPiecesAreWrittenAsStringForAnyType: a value that was sent in pieces is encoded as a string for any type, since it consists of
// bytes.
func TestPiecesAreWrittenAsStringForAnyType(t *testing.T) {
	for typ := range 256 {
		e := Execute{Params: []Param{{Type: byte(typ), Long: []byte("pieces")}, IntParam(5)}}
		again, err := ParseExecute(e.Append(nil, false), 2, false, nil, nil)
		if err != nil || !reflect.DeepEqual(values(again.Params), []any{[]byte("pieces"), int64(5)}) {
			t.Errorf("type %d: command read again = %+v, %v; want pieces and 5", typ, again, err)
		}
	}
}

func TestKeyValueDecodesEachType(t *testing.T) {
	for _, tt := range []struct {
		typ, flags byte
		raw        string
		want       any
	}{
		{1, 0, "\xff", int64(-1)},
		{1, unsigned, "\xff", uint64(255)},
		{2, 0, "\xfe\xff", int64(-2)},
		{2, unsigned, "\xfe\xff", uint64(65534)},
		{13, 0, "\xe8\x07", int64(2024)},
		{3, 0, "\xff\xff\xff\xff", int64(-1)},
		{9, unsigned, "\xff\xff\xff\xff", uint64(math.MaxUint32)},
		{8, 0, "\xff\xff\xff\xff\xff\xff\xff\xff", int64(-1)},
		{8, unsigned, "\xff\xff\xff\xff\xff\xff\xff\xff", uint64(math.MaxUint64)},
		{4, 0, "\x00\x00\xc0\x3f", 1.5},
		{5, 0, "\x00\x00\x00\x00\x00\x00\xf8\x3f", 1.5},
		{246, 0, "\x031.5", []byte("1.5")},
		{254, 0, "\x00", []byte{}},
		{16, 0, "\x01\x05", []byte{5}},
	} {
		if got := (Param{Type: tt.typ, Flags: tt.flags, Raw: []byte(tt.raw)}).KeyValue(); !reflect.DeepEqual(got, tt.want) {
			t.Errorf("type %d, flags %#x: KeyValue(%q) = %#v, want %#v", tt.typ, tt.flags, tt.raw, got, tt.want)
		}
	}
	if got := (Param{Type: 8, Null: true}).KeyValue(); got != nil {
		t.Errorf("KeyValue() of NULL = %#v, want nil", got)
	}
	if got, ok := (Param{Type: 12, Raw: []byte("\x00")}).KeyValue().(struct{}); !ok {
		t.Errorf("KeyValue() of a date = %#v, want struct{}{}", got)
	}
}

func TestFindQueryTextSkipsAttributes(t *testing.T) {
	for _, tt := range []struct {
		payload string
		attrs   bool
		want    string
	}{
		{"\x03SELECT 1", false, "SELECT 1"},
		{"\x03\x00\x01SELECT 1", true, "SELECT 1"},
		{"\x03\x02\x01\x01\x01\xfd\x00\x01a\x08\x00\x01b\x07\x00\x00\x00\x00\x00\x00\x00SELECT 1", true, "SELECT 1"},
		{"\x03", false, ""},
	} {
		at, err := FindQueryText([]byte(tt.payload), tt.attrs)
		if err != nil || tt.payload[at:] != tt.want {
			t.Errorf("FindQueryText(%q) = %d, %v; want the start of %q", tt.payload, at, err, tt.want)
		}
	}
	for _, bad := range []string{"\x03", "\x03\x01\x01", "\x03\xfd\x00\x00\x01\x01SELECT 1", "\x03\x01\x01\x00\x01\xfd\x00\x01aSELECT 1 and no value of 83 bytes"} {
		if at, err := FindQueryText([]byte(bad), true); err == nil {
			t.Errorf("FindQueryText(%q) found %q, want an error", bad, bad[at:])
		}
	}
}

// allocated returns approximately how many bytes a function allocates. Allocations of other goroutines may be
// counted too, but not in every call.
func allocated(of func()) uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	least := uint64(math.MaxUint64)
	for try := 0; try < 5 && least > 64<<10; try++ {
		metrics.Read(sample)
		before := sample[0].Value.Uint64()
		of()
		metrics.Read(sample)
		least = min(least, sample[0].Value.Uint64()-before)
	}
	return least
}

// TestShortPacketsAllocateNoAnnouncedMemory: no memory is allocated for contents that a short packet only announces.
func TestShortPacketsAllocateNoAnnouncedMemory(t *testing.T) {
	bitmap := strings.Repeat("\x00", 8192)
	for name, read := range map[string]func() error{
		"arguments": func() error {
			_, err := ParseExecute([]byte("\x179\x00\x00\x00\x08\x01\x00\x00\x00\xfd\xff\xff\x00"+bitmap+"\x01"), 1, true, nil, nil)
			return err
		},
		"attributes": func() error {
			_, err := FindQueryText([]byte("\x03\xfd\xff\xff\x00\x01"+bitmap+"\x01"), true)
			return err
		},
		"bulk": func() error {
			_, err := ParseBulk([]byte("\xfa9\x00\x00\x00\x80\x00\x08"), 65_535, nil)
			return err
		},
		"a row of a bulk": func() error {
			_, err := ParseBulk([]byte("\xfa9\x00\x00\x00\x00\x00\x08"), 65_535, make([]Param, 65_535))
			return err
		},
	} {
		var err error
		if n := allocated(func() { err = read() }); err == nil || n > 64<<10 && name != "a row of a bulk" || n > 8<<20 {
			t.Errorf("%s: %d bytes allocated, error %v; want an error, and at most 64 KiB, or 8 MiB for a row of a bulk", name, n, err)
		}
	}
}

// FuzzParams: no command of a client causes a panic, and parsed commands are encoded again unchanged.
func FuzzParams(f *testing.F) {
	f.Add([]byte(phpExecute), 3, false, []byte("\xfd\x08\x05"), []byte("long"))
	f.Add([]byte("\x179\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x02zz"), 1, false, []byte("\xfd"), []byte(nil))
	f.Add([]byte("\x179\x00\x00\x00\x08\x01\x00\x00\x00\x02\x00\x01\x08\x00\x01a\xfd\x00\x01b\x01\x00\x00\x00\x00\x00\x00\x00\x01x"), 1, true, []byte(nil), []byte(nil))
	f.Add([]byte("\x179\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00"), 1, false, []byte("\x06"), []byte("0"))
	f.Add([]byte("\x03\x02\x01\x01\x01\xfd\x00\x01a\x08\x00\x01b\x07\x00\x00\x00\x00\x00\x00\x00SELECT 1"), 0, true, []byte(nil), []byte(nil))
	f.Fuzz(func(t *testing.T, p []byte, n int, attrs bool, types, piece []byte) {
		n &= 0xffff
		bound := make([]Param, len(types))
		for i, typ := range types {
			bound[i].Type = typ
		}
		long := map[int][]byte{}
		if len(piece) > 0 {
			long[int(piece[0])%4] = piece
		}
		kept := bytes.Clone(p)
		var at int
		var e Execute
		var textErr, err error
		took := allocated(func() {
			at, textErr = FindQueryText(p, attrs)
			e, err = ParseExecute(p, n, attrs, bound, long)
		})
		if most := uint64(256<<10 + 250*len(p) + 250*len(types)); took > most {
			t.Errorf("%d bytes were allocated for a packet of %d with %d parameters, want at most %d", took, len(p), n, most)
		}
		if textErr == nil && at > max(len(p), 0) {
			t.Errorf("FindQueryText() = %d, want at most %d", at, len(p))
		}
		if !bytes.Equal(p, kept) {
			t.Fatalf("packet after reading = %q, want %q", p, kept)
		}
		if err != nil {
			return
		}
		again, err := ParseExecute(e.Append(nil, attrs), n, attrs, nil, nil)
		got, want := fmt.Sprint(values(again.Params), values(again.Extra)), fmt.Sprint(values(e.Params), values(e.Extra))
		if err != nil || again.Stmt != e.Stmt || got != want {
			t.Errorf("%s became %s, %v", want, got, err)
		}
	})
}
