package catalog

import (
	"math"
	"testing"
)

func TestHighest(t *testing.T) {
	for _, tt := range []struct {
		typ     string
		highest int64
		integer bool
	}{
		{"bigint(20)", math.MaxInt64, true},
		{"bigint(20) unsigned", math.MaxInt64, true},
		{"bigint unsigned", math.MaxInt64, true},
		{"int(11)", math.MaxInt32, true},
		{"int unsigned", math.MaxUint32, true},
		{"int(10) unsigned zerofill", math.MaxUint32, true},
		{"mediumint", 8388607, true},
		{"smallint(5) unsigned", 65535, true},
		{"tinyint(1)", 127, true},
		{"varchar(20)", math.MaxInt64, false},
		{"varchar(4)", 9999, false},
		{"char(19)", math.MaxInt64, false},
		{"decimal(20,0)", math.MaxInt64, false},
		{"decimal(10,2)", 99999999, false},
		{"decimal(2,2)", 0, false},
		{"double", 0, false},
		{"binary(16)", 0, false},
		{"datetime", 0, false},
		{"uuid", 0, false},
	} {
		highest, integer := (&Column{Type: tt.typ}).Highest()
		if highest != tt.highest || integer != tt.integer {
			t.Errorf("a column of type %q holds %d, integer %v", tt.typ, highest, integer)
		}
	}
}
