// Package version returns the version of leafsql that a program was built with.
//
//	fmt.Println("leafsql", version.Current())
//
// It reads only the data that the go command and the linker wrote into the binary.
package version

import (
	"cmp"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
)

const module = "github.com/leafsql/leafsql"

// Current returns the version of leafsql in this program: a tag such as v0.2.0, a pseudo-version with
// its commit, or "(devel)" if the go command did not record a version. All modules of leafsql have
// the same version, so a program in one of them, such as the command, reports its own version.
var Current = sync.OnceValue(func() string {
	info, ok := debug.ReadBuildInfo()
	switch {
	case built != "":
		return built
	case !ok:
		return devel
	}
	return currentOf(info)
})

const devel = "(devel)"

// built is set by a release's build with -ldflags "-X", as its source tree may have no tag.
var built string

func currentOf(info *debug.BuildInfo) string {
	found := &debug.Module{}
	if info.Main.Path == module || strings.HasPrefix(info.Main.Path, module+"/") {
		found = &info.Main
	} else if i := slices.IndexFunc(info.Deps, func(dep *debug.Module) bool { return dep.Path == module }); i >= 0 {
		found = info.Deps[i]
	}
	if found.Replace != nil {
		found = found.Replace
	}
	return cmp.Or(found.Version, devel)
}
