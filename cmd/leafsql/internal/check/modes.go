package check

import (
	"maps"
	"strings"

	"github.com/leafsql/leafsql/internal/quote"
)

// addGlobalMode returns the statement that adds a mode to the global sql_mode.
func addGlobalMode(modes, add string) []string {
	return []string{"SET GLOBAL sql_mode = " + quote.String(strings.Trim(modes+","+add, ","))}
}

// sameOptions compares the options of worker sources, except for credentials.
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
