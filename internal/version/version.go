// Package version says which leafsql a program was built with.
//
//	fmt.Println("leafsql", version.Of())
//
// It knows what the go command wrote into the binary, and nothing else.
package version

import (
	"runtime/debug"
	"sync"
)

const module = "github.com/leafsql/leafsql"

// Of is the version of leafsql in this program: a tag such as v0.2.0, a pseudo-version with
// its commit, or "(devel)" where the go command could not tell.
var Of = sync.OnceValue(func() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return devel
	}
	return of(info)
})

const devel = "(devel)"

func of(info *debug.BuildInfo) string {
	found := &info.Main
	for _, dep := range info.Deps {
		if dep.Path == module {
			found = dep
		}
	}
	if found.Replace != nil {
		found = found.Replace
	}
	if found.Version == "" || found == &info.Main && found.Path != module {
		return devel
	}
	return found.Version
}
