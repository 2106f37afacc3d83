package session

import "testing"

func TestParseVersionReadsServerVersions(t *testing.T) {
	for _, tt := range []struct {
		in      string
		mariaDB bool
		version int
	}{
		{"10.11.19-MariaDB-0+deb12u1", true, 101119},
		{"5.5.5-10.6.4-MariaDB", true, 100604},
		{"8.4.3", false, 80403},
		{"9.7.4-1", false, 90704},
		{"8.0.35-google", false, 80035},
		{"", false, 0},
	} {
		if m, v := ParseVersion(tt.in); m != tt.mariaDB || v != tt.version {
			t.Errorf("ParseVersion(%q) = %v, %d, want %v, %d", tt.in, m, v, tt.mariaDB, tt.version)
		}
	}
}
