package driver

import (
	"math"
	"testing"
)

func TestLimit(t *testing.T) {
	for _, tt := range []struct {
		typ     string
		highest int64
		integer bool
		ok      bool
	}{
		{"bigint(20)", math.MaxInt64, true, true},
		{"bigint(20) unsigned", math.MaxInt64, true, true},
		{"bigint unsigned", math.MaxInt64, true, true},
		{"int(11)", math.MaxInt32, true, true},
		{"int unsigned", math.MaxUint32, true, true},
		{"int(10) unsigned zerofill", math.MaxUint32, true, true},
		{"mediumint", 8388607, true, true},
		{"smallint(5) unsigned", 65535, true, true},
		{"tinyint(1)", 127, true, true},
		{"varchar(20)", math.MaxInt64, false, true},
		{"varchar(4)", 9999, false, true},
		{"char(19)", math.MaxInt64, false, true},
		{"decimal(20,0)", math.MaxInt64, false, true},
		{"decimal(10,2)", 99999999, false, true},
		{"decimal(2,2)", 0, false, false},
		{"double", 0, false, false},
		{"binary(16)", 0, false, false},
		{"datetime", 0, false, false},
		{"uuid", 0, false, false},
	} {
		highest, integer, ok := limit(tt.typ)
		if highest != tt.highest || integer != tt.integer || ok != tt.ok {
			t.Errorf("limit(%q) = %d, %v, %v", tt.typ, highest, integer, ok)
		}
	}
}
