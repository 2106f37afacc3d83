//go:build packages

package contrib

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestCompletionWorksInEveryShell: zsh and fish complete subcommands and flags; bash is tested with the command.
func TestCompletionWorksInEveryShell(t *testing.T) {
	scripts := filepath.Join(release(t), "completions")
	out := run(t, "", "fish", "--no-config", "-c", `source $argv[1]; complete -C "leafsql ch"; complete -C "leafsql check -s"; complete -C "leafsql completion "; complete -C "leafsql serve -config /etc/host"`, filepath.Join(scripts, "leafsql.fish"))
	var got []string
	for line := range strings.Lines(out) {
		word, _, _ := strings.Cut(strings.TrimSpace(line), "\t")
		got = append(got, word)
	}
	if got := strings.Join(got, " "); !strings.HasPrefix(got, "check -shard -since bash fish zsh /etc/host") {
		t.Errorf("completions of fish = %s, want check, -shard, -since, the shells and a file", out)
	}
	// An interactive zsh, to which somebody types.
	out = run(t, `zmodload zsh/zpty
zpty z zsh -f -i
zpty -w z "PS1=@; stty -echo; autoload -Uz compinit; compinit -D -u; source $1; leafsql() { print -r -- ran \"\$*\" }; echo loaded"
zpty -r -m z out '*loaded*loaded*'
zpty -w -n z $'leafsql mig\t -ke\t -do drop\n'
zpty -r -m z out '*ran *drop*'
print -r -- $out
zpty -d z
`, "timeout", "120", "zsh", "-f", "-s", filepath.Join(scripts, "_leafsql"))
	if !strings.Contains(out, "ran migrate -keep-type -do drop") {
		t.Errorf("output of zsh = %q, want \"ran migrate -keep-type -do drop\"", out)
	}
}
