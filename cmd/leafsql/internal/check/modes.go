package check

import (
	"maps"
	"slices"
	"strings"

	"github.com/leafsql/leafsql/internal/quote"
)

func splitModes(mode string) []string {
	return slices.DeleteFunc(strings.Split(mode, ","), func(m string) bool { return m == "" })
}

// globalMode is the SQL that takes a mode out of the global ones, and puts one in;
// none where that changes nothing.
func globalMode(mode, without, with string) []string {
	modes := splitModes(mode)
	changed := slices.DeleteFunc(slices.Clone(modes), func(m string) bool { return m == without })
	if with != "" && !slices.Contains(changed, with) {
		changed = append(changed, with)
	}
	if slices.Equal(changed, modes) {
		return nil
	}
	return []string{"SET GLOBAL sql_mode = " + quote.String(strings.Join(changed, ","))}
}

// sameOptions compares worker sources' options, without who logs in.
func sameOptions(a, b map[string]string) bool {
	matter := func(m map[string]string) map[string]string {
		m = maps.Clone(m)
		maps.DeleteFunc(m, func(k, _ string) bool {
			k = strings.ToLower(k)
			return strings.Contains(k, "user") || strings.Contains(k, "password") || strings.Contains(k, "key") || strings.Contains(k, "token")
		})
		return m
	}
	return maps.Equal(matter(a), matter(b))
}
