// Package spec parses the name of a source of worker ids in a DSN, and has the requests for opening one.
//
//	name, address, err := spec.Parse("nacos(h1:8848,h2:8848)") // "nacos", "h1:8848,h2:8848"
//
// Package worker has the list of sources.
package spec

import (
	"fmt"
	"strings"
)

// Parse cuts "name(address)" into its parts. For other forms it returns an error, which contains no password.
func Parse(spec string) (name, address string, err error) {
	name, rest, ok := strings.Cut(spec, "(")
	if !ok || name == "" || !strings.HasSuffix(rest, ")") {
		if i := strings.LastIndexByte(spec, '@'); i >= 0 {
			spec = "…" + spec[i:] // without the part before @, which may be a password
		}
		return "", "", fmt.Errorf("leafsql: worker source %q: it is not of the form name(address); write for example static(7)", spec)
	}
	return name, strings.TrimSuffix(rest, ")"), nil
}
