//go:build unix

package main

import (
	osexec "os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestCompletionOfBash: bash completes subcommands and their flags, and no flags as the value of a flag.
func TestCompletionOfBash(t *testing.T) {
	script := mustRun(t, exitOK, "completion", "bash")
	complete := func(words ...string) []string {
		t.Helper()
		cmd := osexec.CommandContext(t.Context(), "bash", append([]string{"--norc", "-c", `eval "$0"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _leafsql; echo "${COMPREPLY[*]}"`, script, "leafsql"}, words...)...)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return strings.Fields(string(out))
	}
	for _, c := range commands {
		want := slices.Clone(shells)
		if c.name != "completion" {
			want = nil
			for _, m := range regexp.MustCompile(`(?m)^  (-[\w-]+)`).FindAllStringSubmatch(mustRun(t, exitOK, "help", c.name), -1) {
				want = append(want, m[1])
			}
		}
		if got := complete(c.name, ""); !slices.Equal(got, want) || len(want) == 0 {
			t.Errorf("leafsql %s: %v, want %v", c.name, got, want)
		}
	}
	for words, want := range map[string]string{"": "check init migrate decode tags workers bench serve proxy completion version help", "ch": "check",
		"check -s": "-shard -since", "check -dsn x -j": "-json", "check -dsn ": "", "help mi": "migrate", "nosuch ": ""} {
		if got := strings.Join(complete(strings.Split(words, " ")...), " "); got != want {
			t.Errorf("leafsql %s: %s, want %s", words, got, want)
		}
	}
	for _, args := range []string{"", "tcsh", "bash zsh"} {
		if status, _, errs := runLeafsql(t.Context(), append([]string{"completion"}, strings.Fields(args)...)...); status != exitFailure || !strings.Contains(errs, "bash, zsh and fish") {
			t.Errorf("completion %s: %d %s", args, status, errs)
		}
	}
}

// TestHelpHasExampleAndPage: the help of each subcommand has an example with existing flags, and the address of an existing
// page.
func TestHelpHasExampleAndPage(t *testing.T) {
	for _, c := range commands {
		help := mustRun(t, exitOK, "help", c.name)
		if again := mustRun(t, exitOK, c.name, "-h"); again != help {
			t.Errorf("leafsql %s -h = %s\nwant as by help:\n%s", c.name, again, help)
		}
		example, found := strings.CutPrefix(regexp.MustCompile(`(?m)^Example: .*$`).FindString(help), "Example: leafsql "+c.name+" ")
		for _, flag := range regexp.MustCompile(` (-[a-z-]+)`).FindAllStringSubmatch(" "+example, -1) {
			found = found && slices.ContainsFunc(c.flagHelps(t.Context()), func(o flagHelp) bool { return o.name == flag[1] })
		}
		file := regexp.MustCompile(`(?m)^More: https://github.com/leafsql/leafsql/blob/main/(docs/\w+\.md)`).FindStringSubmatch(help)
		if !found || file == nil {
			t.Fatalf("help of %s = %s\nwant an example and the address of a page", c.name, help)
		}
		if pages, _ := filepath.Glob("../../" + file[1]); len(pages) == 0 {
			t.Errorf("help of %s names %s, want a page that exists", c.name, file[1])
		}
	}
	if status, _, errs := runLeafsql(t.Context(), "help", "nosuch"); status != exitFailure || !strings.Contains(errs, `"nosuch" is not a subcommand`) {
		t.Errorf("help nosuch: status %d, error %q, want %d and the name", status, errs, exitFailure)
	}
	if help := mustRun(t, exitOK, "help", "help"); help != mustRun(t, exitOK, "help") {
		t.Errorf("help help = %s\nwant as by help", help)
	}
}
