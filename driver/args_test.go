package driver

import (
	"database/sql/driver"
	"encoding/json"
	"math"
	"testing"
	"time"

	"github.com/leafsql/leafsql/driver/internal/insert"
)

func TestMeaning(t *testing.T) {
	const given, wanted, unclear = keyGiven, keyWanted, keyUnclear
	for _, tt := range []struct {
		v                driver.Value
		fill, keep, text keyMeaning // integer key; with leafZero=keep; key of another type
	}{
		{nil, wanted, wanted, wanted},
		{[]byte(nil), wanted, wanted, wanted},
		{json.RawMessage(nil), wanted, wanted, wanted},
		{int64(0), wanted, given, wanted}, {uint64(0), wanted, given, wanted}, {false, wanted, given, wanted},
		{0.0, wanted, given, wanted}, {0.4, wanted, given, given}, {-0.4, wanted, given, given}, {0.5, wanted, given, given},
		{math.Copysign(0, -1), wanted, given, wanted},
		{"0", wanted, given, wanted}, {[]byte("0"), wanted, given, wanted}, {json.RawMessage("0"), wanted, given, wanted},
		{"00", wanted, given, given}, {"0.0", wanted, given, given}, {"-0", wanted, given, given}, {"+0", wanted, given, given},
		{" 0", wanted, given, given}, {"0 ", wanted, given, given}, {"0e0", wanted, given, given}, {".0", wanted, given, given},
		{"0.", wanted, given, given}, {"0.4", wanted, given, given}, {"0.49999999999999999999", wanted, given, given},
		{"0e12345", wanted, given, given},
		{int64(1), given, given, given}, {int64(-1), given, given, given}, {uint64(1 << 63), given, given, given}, {true, given, given, given},
		{0.6, given, given, given}, {1.0, given, given, given}, {"1", given, given, given}, {"0.51", given, given, given}, {" 12 ", given, given, given},
		{"", unclear, unclear, given}, {"abc", unclear, unclear, given}, {"0x0", unclear, unclear, given}, {"5abc", unclear, unclear, given},
		{"inf", unclear, unclear, given}, {"nan", unclear, unclear, given}, {"-", unclear, unclear, given}, {[]byte{}, unclear, unclear, given},
		{"0_0", unclear, unclear, given}, {time.Time{}, unclear, unclear, given},
	} {
		for _, on := range []struct {
			table insert.Table
			want  keyMeaning
		}{{insert.Table{IntegerKey: true}, tt.fill}, {insert.Table{IntegerKey: true, KeepZero: true}, tt.keep}, {insert.Table{}, tt.text}} {
			if got := meaning(tt.v, &on.table); got != on.want {
				t.Errorf("meaning(%T %v) = %d with integer key %v, leafZero=keep %v; want %d", tt.v, tt.v, got, on.table.IntegerKey, on.table.KeepZero, on.want)
			}
		}
	}
}

func TestLeadingNumber(t *testing.T) {
	for s, want := range map[string]float64{"12abc": 12, "abc": 0, "": 0, "0abc": 0, "-3.5e1x": -35, "1e": 1, "0x10": 0, "  7 ": 7, "infinity": 0} {
		if f, _ := leadingNumber(s); f != want {
			t.Errorf("leadingNumber(%q) = %v, want %v", s, f, want)
		}
	}
}
