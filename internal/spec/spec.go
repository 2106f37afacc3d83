// Package spec reads how a DSN names a source of worker ids.
//
//	name, address, err := spec.Parse("nacos(h1:8848,h2:8848)") // "nacos", "h1:8848,h2:8848"
//
// Which sources there are it does not know: that is package worker's.
package spec

import (
	"fmt"
	"strings"
)

// Parse cuts "name(address)" into its parts.
func Parse(spec string) (name, address string, err error) {
	name, rest, ok := strings.Cut(spec, "(")
	if !ok || name == "" || !strings.HasSuffix(rest, ")") {
		if i := strings.LastIndexByte(spec, '@'); i >= 0 {
			spec = "…" + spec[i:] // a password may stand before it
		}
		return "", "", fmt.Errorf("leafsql: worker source %q: not of the form name(address); write for example static(7)", spec)
	}
	return name, strings.TrimSuffix(rest, ")"), nil
}
