package driver

import (
	"database/sql/driver"
	"encoding/json"
	"math"
	"testing"
	"time"
)

func TestGenerates(t *testing.T) {
	for _, tt := range []struct {
		v          driver.Value
		fill, keep bool // leafZero=fill, leafZero=keep
	}{
		{nil, true, true},
		{[]byte(nil), true, true},
		{json.RawMessage(nil), true, true},
		{int64(0), true, false}, {uint64(0), true, false}, {false, true, false},
		{0.0, true, false}, {0.4, true, false}, {-0.4, true, false}, {math.Copysign(0, -1), true, false},
		{"0", true, false}, {"00", true, false}, {"0.0", true, false}, {"-0", true, false}, {"+0", true, false},
		{" 0", true, false}, {"0 ", true, false}, {"0e0", true, false}, {".0", true, false}, {"0.", true, false}, {"0.4", true, false},
		{[]byte("0"), true, false}, {json.RawMessage("0"), true, false},
		{int64(1), false, false}, {int64(-1), false, false}, {uint64(1 << 63), false, false}, {true, false, false},
		{0.6, false, false}, {1.0, false, false},
		{"", false, false}, {"abc", false, false}, {"0x0", false, false}, {"1", false, false}, {"0.5", false, false}, {"inf", false, false},
		{"nan", false, false}, {"-", false, false}, {[]byte{}, false, false}, {time.Time{}, false, false}, {"0_0", false, false},
	} {
		if got := generates(tt.v, false); got != tt.fill {
			t.Errorf("generates(%T %v) = %v", tt.v, tt.v, got)
		}
		if got := generates(tt.v, true); got != tt.keep {
			t.Errorf("generates(%T %v) with leafZero=keep = %v", tt.v, tt.v, got)
		}
	}
}
