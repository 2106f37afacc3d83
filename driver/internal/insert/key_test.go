package insert

import (
	"math"
	"testing"
	"time"
)

func TestKeyMeaningDependsOnColumnType(t *testing.T) {
	const given, wanted, unclear = KeyGiven, KeyWanted, KeyUnclear
	for _, tt := range []struct {
		v                any
		fill, keep, text KeyMeaning // integer key; with leafZero=keep; key of another type
	}{
		{nil, wanted, wanted, wanted},
		{[]byte(nil), wanted, wanted, wanted},
		{int64(0), wanted, given, wanted}, {uint64(0), wanted, given, wanted},
		{0.0, wanted, given, wanted}, {0.4, unclear, unclear, given}, {-0.4, unclear, unclear, given}, {7.5, unclear, unclear, given},
		{math.Copysign(0, -1), wanted, given, wanted},
		{"0", wanted, given, wanted}, {[]byte("0"), wanted, given, wanted},
		{"00", wanted, given, given}, {"0.0", unclear, unclear, given}, {"-0", wanted, given, given}, {"+0", wanted, given, given},
		{" 0", wanted, given, given}, {"0 ", wanted, given, given}, {"0e0", unclear, unclear, given}, {".0", unclear, unclear, given},
		{"0.", unclear, unclear, given}, {"0.4", unclear, unclear, given}, {"0.49999999999999999999", unclear, unclear, given},
		{"0e12345", unclear, unclear, given},
		{int64(1), given, given, given}, {int64(-1), given, given, given}, {uint64(1 << 63), given, given, given}, {"7.5", unclear, unclear, given},
		{1e300, unclear, unclear, given}, {math.NaN(), unclear, unclear, given}, {1.0, given, given, given}, {"1", given, given, given}, {"0.51", unclear, unclear, given}, {" 12 ", given, given, given},
		{"", unclear, unclear, given}, {"abc", unclear, unclear, given}, {"0x0", unclear, unclear, given}, {"5abc", unclear, unclear, given},
		{"inf", unclear, unclear, given}, {"nan", unclear, unclear, given}, {"-", unclear, unclear, given}, {[]byte{}, unclear, unclear, given},
		{"0_0", unclear, unclear, given}, {time.Time{}, unclear, unclear, unclear}, {true, unclear, unclear, unclear},
	} {
		for _, on := range []struct {
			table Table
			want  KeyMeaning
		}{{Table{IntegerKey: true, ZeroKey: KeyWanted}, tt.fill}, {Table{IntegerKey: true, ZeroKey: KeyGiven}, tt.keep}, {Table{ZeroKey: KeyWanted}, tt.text}} {
			if got, _, _ := on.table.KeyMeaning(tt.v); got != on.want {
				t.Errorf("meaning(%T %v) = %d with integer key %v, meaning %d of a 0; want %d", tt.v, tt.v, got, on.table.IntegerKey, on.table.ZeroKey, on.want)
			}
		}
	}
}

// TestUnsignedColumnMayMakeZeroOfNegativeKey: a column without negative values may make 0 of one.
func TestUnsignedColumnMayMakeZeroOfNegativeKey(t *testing.T) {
	for _, v := range []any{int64(-1), int64(math.MinInt64), -7.0, "-1", []byte("-1"), " -7 "} {
		signed, _, _ := (&Table{IntegerKey: true}).KeyMeaning(v)
		unsigned, _, _ := (&Table{IntegerKey: true, Unsigned: true}).KeyMeaning(v)
		if signed != KeyGiven || unsigned != KeyUnclear {
			t.Errorf("meaning(%T %v) = %d in a signed column and %d in an unsigned one, want %d and %d", v, v, signed, unsigned, KeyGiven, KeyUnclear)
		}
	}
}

func TestKeyMeaningReturnsFloor(t *testing.T) {
	integer, text := &Table{IntegerKey: true}, &Table{}
	for _, tt := range []struct {
		v    any
		want int64
	}{
		{int64(7), 7}, {int64(-7), 0}, {int64(0), 0}, {nil, 0}, {uint64(1 << 63), math.MaxInt64},
		{"77", 77}, {[]byte("77"), 77}, {" 77 ", 77}, {"+77", 77}, {"-77", 0}, {"077", 77},
		{"9223372036854775807", math.MaxInt64}, {"99999999999999999999", math.MaxInt64},
		{77.0, 77}, {-77.0, 0}, {"abc", 0},
	} {
		if _, got, _ := integer.KeyMeaning(tt.v); got != tt.want {
			t.Errorf("floor(%T %v) = %d, want %d", tt.v, tt.v, got, tt.want)
		}
		if _, got, _ := text.KeyMeaning(tt.v); got != tt.want {
			t.Errorf("floor(%T %v) in a text column = %d, want %d", tt.v, tt.v, got, tt.want)
		}
	}
	for v, want := range map[any]int64{"101.00": 101, "100.5": 101, "1e3": 1000, " 7.2": 8, "-7.5": 0, "nan": 0, "inf": math.MaxInt64, 7.5: 8, -7.5: 0, 1e300: math.MaxInt64} {
		if _, got, _ := text.KeyMeaning(v); got != want {
			t.Errorf("floor(%T %v) in a DECIMAL column = %d, want %d", v, v, got, want)
		}
	}
}

func TestEmptyAndZeroRequestUUID(t *testing.T) {
	for _, form := range []UUIDForm{UUIDText, UUIDBytes} {
		table := &Table{UUID: form, ZeroKey: KeyWanted}
		for _, v := range []any{nil, []byte(nil), "", []byte{}, "0", int64(0), "00000000-0000-0000-0000-000000000000", "00000000000000000000000000000000", make([]byte, 16), 0.0} {
			if m, _, _ := table.KeyMeaning(v); m != KeyWanted {
				t.Errorf("meaning(%T %v) = %d, want %d", v, v, m, KeyWanted)
			}
		}
		for _, v := range []any{"00000000-0000-0000-0000-000000000001", append(make([]byte, 15), 1), "x", int64(7)} {
			if m, _, _ := table.KeyMeaning(v); m != KeyGiven {
				t.Errorf("meaning(%T %v) = %d, want %d", v, v, m, KeyGiven)
			}
		}
	}
}
