package wire

import (
	"reflect"
	"slices"
	"strings"
	"testing"
)

const (
	bulkHead = "\xfa9\x00\x00\x00\x80\x00\x08\x00\xfd\x00"
	bulkRow  = "\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00\x01a" // 1, 'a'
)

// rows returns the remaining rows of a bulk.
func rows(b Bulk) (all [][]Param) {
	for range b.Rows {
		all = append(all, slices.Clone(b.Next()))
	}
	return all
}

func TestBulkRowsAreReadAndWritten(t *testing.T) {
	b, err := ParseBulk([]byte(bulkHead+bulkRow+"\x01\x02"+"\x03\x00\x01b"), 2, nil)
	want := [][]Param{{{Type: 8, Raw: []byte("\x01\x00\x00\x00\x00\x00\x00\x00")}, {Type: 253, Raw: []byte("\x01a")}}, {{Type: 8, Indicator: 1}, {Type: 253, Indicator: 2}}, {{Type: 8, Indicator: 3}, {Type: 253, Raw: []byte("\x01b")}}}
	for range 2 { // each iteration reads a copy
		if got := rows(b); err != nil || b.Stmt != 57 || !reflect.DeepEqual(got, want) {
			t.Errorf("ParseBulk() = %+v with rows %v, error %v; want %v", b, got, err, want)
		}
	}
	for i, keys := range [][]any{{int64(1), []byte("a")}, {nil, nil}, {nil, []byte("b")}} {
		for j, key := range keys {
			if got := want[i][j].KeyValue(); !reflect.DeepEqual(got, key) {
				t.Errorf("row %d, argument %d: KeyValue() = %v, want %v", i, j, got, key)
			}
		}
	}
	again, err := ParseBulk([]byte("\xfa9\x00\x00\x00\x00\x00"+bulkRow), 2, b.Types)
	if got := rows(again); err != nil || !reflect.DeepEqual(got, want[:1]) {
		t.Errorf("rows with the earlier types = %v, error %v; want %v", got, err, want[:1])
	}
	all, err := ParseBulk([]byte(strings.Replace(bulkHead, "\x80", "\xff", 1)+bulkRow), 2, nil)
	if got, want := all.Append(nil), bulkHead+bulkRow; err != nil || string(got) != want {
		t.Errorf("bulk with all flags written as %q, error %v; want %q", got, err, want)
	}
	for _, bad := range []string{"\xfa", bulkHead[:9], "\xfa9\x00\x00\x00\x00\x00" + bulkRow, bulkHead + bulkRow[:5], bulkHead + bulkRow + "\x00"} {
		if b, err := ParseBulk([]byte(bad), 2, nil); err == nil {
			t.Errorf("ParseBulk(%q) = %+v, want an error", bad, b)
		}
	}
}

// FuzzBulk: no bulk of a client causes a panic, and parsed bulks are encoded again unchanged.
func FuzzBulk(f *testing.F) {
	f.Add([]byte(bulkHead+bulkRow+"\x01\x02"+"\x03\x00\x01b"), 2, []byte(nil))
	f.Add([]byte("\xfa9\x00\x00\x00\x00\x00"+bulkRow), 2, []byte("\x08\xfd"))
	f.Fuzz(func(t *testing.T, p []byte, n int, types []byte) {
		bound := make([]Param, len(types))
		for i, typ := range types {
			bound[i].Type = typ
		}
		b, err := ParseBulk(p, n&0xffff, bound)
		if err != nil {
			return
		}
		written := AppendBulk(nil, b.Stmt, b.Types)
		for _, row := range rows(b) {
			for _, v := range row {
				v.KeyValue()
				written = AppendBulkValue(written, v)
			}
		}
		again, err := ParseBulk(written, len(b.Types), nil)
		if err != nil || again.Rows != b.Rows || !reflect.DeepEqual(rows(again), rows(b)) {
			t.Errorf("rows read again = %v, %v; want %v", rows(again), err, rows(b))
		}
	})
}
