package docs

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
)

// TestCommandFlagsAreDocumented: the flags of each subcommand of leafsql are those in command.md, serve.md and proxy.md.
func TestCommandFlagsAreDocumented(t *testing.T) {
	program := filepath.Join(buildToolsFolder(t), "leafsql")
	help := func(args ...string) string {
		out, err := exec.Command(program, args...).Output()
		if err != nil {
			t.Fatal(err)
		}
		return string(out)
	}
	firsts := func(text, pattern string) (names []string) {
		for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
			names = append(names, m[1])
		}
		return names
	}
	var shown []string
	for _, row := range readTable(t, "command.md", "## Subcommands") {
		name := firsts(row[0], `^\[(\w+)\]`)[0]
		shown = append(shown, name)
		file, heading := "command.md", "## "+name
		switch name {
		case "serve":
			file, heading = "serve.md", "### Settings"
		case "proxy":
			file, heading = "proxy.md", "## Settings of the proxy"
		}
		var flags []string
		if name == "completion" { // has no flags
			continue
		}
		for _, row := range readTable(t, file, heading) {
			flags = append(flags, firsts(row[0], "^`(-[\\w-]+)`")...)
		}
		compareNames(t, file+", "+heading, flags, "leafsql "+name+" -h", firsts(help(name, "-h"), `(?m)^  (-[\w-]+)`))
	}
	compareNames(t, "command.md", shown, "leafsql help", firsts(help("help"), `(?m)^  (\w+)( |$)`))
}
