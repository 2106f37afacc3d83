package session

import (
	"strconv"
	"strings"
)

// ParseVersion reads VERSION() as version comments write it: "10.11.19-MariaDB"
// is 101119, "8.4.3" is 80403. MariaDB may put "5.5.5-" before its own.
func ParseVersion(s string) (mariaDB bool, version int) {
	mariaDB = strings.Contains(strings.ToLower(s), "mariadb")
	if mariaDB {
		s = strings.TrimPrefix(s, "5.5.5-")
	}
	s, _, _ = strings.Cut(s, "-")
	parts := strings.SplitN(s, ".", 4)
	for i := range 3 {
		version *= 100
		if i < len(parts) {
			n, _ := strconv.Atoi(parts[i]) // a part that is no number counts 0
			version += min(n, 99)
		}
	}
	return mariaDB, version
}
