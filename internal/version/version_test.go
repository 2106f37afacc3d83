package version

import (
	"runtime/debug"
	"testing"
)

func TestVersionComesFromModuleOrBuild(t *testing.T) {
	lib := func(m debug.Module) *debug.BuildInfo {
		return &debug.BuildInfo{Main: debug.Module{Path: "example.com/shop", Version: "v9.9.9"}, Deps: []*debug.Module{{Path: "example.com/x", Version: "v1.0.0"}, &m}}
	}
	for _, c := range []struct {
		info *debug.BuildInfo
		want string
	}{
		{&debug.BuildInfo{Main: debug.Module{Path: module, Version: "v0.2.0"}}, "v0.2.0"},
		{&debug.BuildInfo{Main: debug.Module{Path: module}}, devel},
		{&debug.BuildInfo{Main: debug.Module{Path: module + "/cmd/leafsql", Version: "v0.2.0"}, Deps: []*debug.Module{{Path: module, Replace: &debug.Module{Path: "../.."}}}}, "v0.2.0"},
		{&debug.BuildInfo{Main: debug.Module{Path: module + "shop", Version: "v9.9.9"}}, devel},
		{lib(debug.Module{Path: module, Version: "v0.2.0"}), "v0.2.0"},
		{lib(debug.Module{Path: module, Version: "v0.2.0", Replace: &debug.Module{Path: "../leafsql"}}), devel},
		{lib(debug.Module{Path: module, Version: "v0.2.0", Replace: &debug.Module{Path: "example.com/fork", Version: "v0.2.1"}}), "v0.2.1"},
		{&debug.BuildInfo{Main: debug.Module{Path: "example.com/shop", Version: "v9.9.9"}}, devel},
	} {
		if got := currentOf(c.info); got != c.want {
			t.Errorf("%+v: %s, want %s", c.info, got, c.want)
		}
	}
	if Current() == "" {
		t.Error("Current() is empty, want a version")
	}
}
