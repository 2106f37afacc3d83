package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/leafsql/leafsql/cmd/leafsql/internal/screen"
)

// runCompletion writes a shell's script for the completion of subcommands and their flags, as listed by -h.
func runCompletion(ctx context.Context, s *screen.Screen, args []string) (int, error) {
	f := newFlags(s, "completion")
	if err := f.parse(args, true); err != nil {
		return exitFailure, err
	}
	write := map[string]func(ctx context.Context, w io.Writer){"bash": writeBash, "zsh": writeZsh, "fish": writeFish}[f.Arg(0)]
	if write == nil || f.NArg() != 1 {
		return exitFailure, errors.New("leafsql: completion: name one shell of bash, zsh and fish, as in leafsql completion bash")
	}
	var script strings.Builder
	write(ctx, &script)
	s.PrintSource(script.String())
	return exitOK, nil
}

// A flagHelp is a flag in the output of -h.
type flagHelp struct {
	name  string // with its dashes
	value string // kind of its value, "" if it has none
	usage string
}

func (c command) flagHelps(ctx context.Context) (all []flagHelp) {
	var out bytes.Buffer
	c.run(ctx, &screen.Screen{Out: &out, Err: &out}, []string{"-h"})
	for _, m := range regexp.MustCompile(`(?m)^  (-[\w-]+)(?: (\S+))?\n?\s*\t(.*)$`).FindAllStringSubmatch(out.String(), -1) {
		all = append(all, flagHelp{m[1], m[2], m[3]})
	}
	return all
}

var shells = []string{"bash", "zsh", "fish"}

func writeBash(ctx context.Context, w io.Writer) {
	fmt.Fprintf(w, `# bash: source <(leafsql completion bash)
_leafsql() {
	local words= word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]}
	COMPREPLY=()
	if ((COMP_CWORD == 1)); then
		words="%s help"
	else
		case ${COMP_WORDS[1]} in
`, strings.Join(commandNames(), " "))
	for _, c := range commands {
		var flags, valued []string
		for _, o := range c.flagHelps(ctx) {
			flags = append(flags, o.name)
			if o.value != "" {
				valued = append(valued, o.name)
			}
		}
		fmt.Fprintf(w, "\t\t%s)\n", c.name)
		if len(valued) > 0 {
			fmt.Fprintf(w, "\t\t\tcase $before in %s) return ;; esac\n", strings.Join(valued, " | "))
		}
		if c.name == "completion" {
			flags = shells
		}
		fmt.Fprintf(w, "\t\t\twords=%q\n\t\t\t;;\n", strings.Join(flags, " "))
	}
	fmt.Fprintf(w, "\t\thelp) words=%q ;;\n\t\tesac\n\tfi\n\tCOMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n}\ncomplete -o default -F _leafsql leafsql\n", strings.Join(commandNames(), " "))
}

func writeZsh(ctx context.Context, w io.Writer) {
	text := strings.NewReplacer("'", `'\''`, "[", "(", "]", ")", ":", `\:`).Replace
	fmt.Fprintf(w, "#compdef leafsql\n# zsh: source <(leafsql completion zsh), after compinit\n_leafsql() {\n\tlocal -a subcommands\n\tsubcommands=(\n")
	for _, c := range commands {
		fmt.Fprintf(w, "\t\t'%s:%s'\n", c.name, text(c.summary))
	}
	fmt.Fprintf(w, "\t\t'help:say what a subcommand does'\n\t)\n\tif (( CURRENT == 2 )); then\n\t\t_describe subcommand subcommands\n\t\treturn\n\tfi\n\tshift words\n\t(( CURRENT-- ))\n\tcase $words[1] in\n")
	for _, c := range commands {
		fmt.Fprintf(w, "\t%s)\n\t\t_arguments", c.name)
		for _, o := range c.flagHelps(ctx) {
			fmt.Fprintf(w, " \\\n\t\t\t'*%s[%s]", o.name, text(o.usage))
			switch o.value {
			case "":
			case "file":
				fmt.Fprintf(w, ":file:_files")
			default:
				fmt.Fprintf(w, ":%s:", text(o.value))
			}
			fmt.Fprintf(w, "'")
		}
		if c.name == "completion" {
			fmt.Fprintf(w, " '1:shell:(%s)'", strings.Join(shells, " "))
		}
		fmt.Fprintf(w, "\n\t\t;;\n")
	}
	fmt.Fprintf(w, "\thelp) _describe subcommand subcommands ;;\n\tesac\n}\ncompdef _leafsql leafsql\n")
}

func writeFish(ctx context.Context, w io.Writer) {
	text := strings.NewReplacer(`\`, `\\`, "'", `\'`).Replace
	fmt.Fprintf(w, "# fish: leafsql completion fish | source\ncomplete -c leafsql -f\n")
	for _, c := range commands {
		fmt.Fprintf(w, "complete -c leafsql -n __fish_use_subcommand -a %s -d '%s'\n", c.name, text(c.summary))
		for _, o := range c.flagHelps(ctx) {
			takes := ""
			switch o.value {
			case "":
			case "file":
				takes = " -r -F"
			default:
				takes = " -x"
			}
			fmt.Fprintf(w, "complete -c leafsql -n '__fish_seen_subcommand_from %s' -o %s%s -d '%s'\n", c.name, o.name[1:], takes, text(o.usage))
		}
	}
	fmt.Fprintf(w, "complete -c leafsql -n '__fish_seen_subcommand_from completion' -a '%s'\n", strings.Join(shells, " "))
	fmt.Fprintf(w, "complete -c leafsql -n __fish_use_subcommand -a help -d 'say what a subcommand does'\ncomplete -c leafsql -n '__fish_seen_subcommand_from help' -a '%s'\n", strings.Join(commandNames(), " "))
}

func commandNames() (all []string) {
	for _, c := range commands {
		all = append(all, c.name)
	}
	return all
}
