//go:build unix

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// source writes a peer's files into the folder tree, from its module or from a
// commit of its repository.
func (p peer) source(root, tree string) error {
	if err := os.RemoveAll(tree); err != nil {
		return err
	}
	if p.repository != "" {
		return p.clone(tree)
	}
	out, err := run(filepath.Join(root, p.folder), "go", "mod", "download", "-json", p.module)
	if err != nil {
		return err
	}
	var module struct{ Dir string }
	if err := json.Unmarshal([]byte(out), &module); err != nil {
		return err
	}
	if err := os.CopyFS(tree, os.DirFS(module.Dir)); err != nil {
		return err
	}
	_, err = run(tree, "chmod", "-R", "u+w", ".")
	return err
}

// clone fetches the needed files of one commit. If the repository's host cannot
// be reached, git's setting url.MIRROR.insteadOf can name a mirror.
func (p peer) clone(tree string) error {
	if err := os.MkdirAll(tree, 0o755); err != nil {
		return err
	}
	commands := [][]string{
		{"init", "--quiet"},
		{"remote", "add", "origin", p.repository},
		{"fetch", "--quiet", "--depth=1", "--filter=blob:none", "origin", p.commit},
		{"checkout", "--quiet", "FETCH_HEAD"},
	}
	if len(p.sparse) > 0 {
		commands = slices.Insert(commands, 2, append([]string{"sparse-checkout", "set", "--no-cone"}, p.sparse...))
	}
	for _, args := range commands {
		if _, err := run(tree, "git", args...); err != nil {
			return err
		}
	}
	return nil
}

// An edit replaces every occurrence of a text in a file.
type edit struct{ file, text, by string }

func (e edit) apply(tree string) error {
	path := filepath.Join(tree, e.file)
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if !bytes.Contains(content, []byte(e.text)) {
		return fmt.Errorf("%s has no %q", e.file, e.text)
	}
	return os.WriteFile(path, []byte(strings.ReplaceAll(string(content), e.text, e.by)), 0o644)
}
