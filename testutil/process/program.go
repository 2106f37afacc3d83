//go:build unix

package process

import (
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
)

// A Program is an installed server, or one that was unpacked into the cache folder.
type Program struct {
	path      string
	libraries []string // folders of its libraries
}

// Find looks for a program on the PATH, and then in the tree that the install.sh of pkg has unpacked under that name.
// The error of a missing program names that install.sh.
func Find(program, tree, pkg string) (Program, error) {
	if path, err := exec.LookPath(program); err == nil {
		return Program{path: path}, nil
	}
	root, err := Cache(tree)
	if err != nil {
		return Program{}, err
	}
	p := Program{path: filepath.Join(root, "usr/bin", program)}
	if _, err := os.Stat(p.path); err != nil {
		return Program{}, fmt.Errorf("%s: no %s found; run %s/install.sh, which unpacks it (Debian), or install it", path.Base(pkg), program, pkg)
	}
	for _, folders := range []string{"usr/lib/*-linux-gnu*", "lib/*-linux-gnu*"} {
		found, _ := filepath.Glob(filepath.Join(root, folders)) // the pattern is valid
		p.libraries = append(p.libraries, found...)
	}
	return p, nil
}

// Command returns a command that runs the program.
func (p Program) Command(args ...string) *exec.Cmd {
	cmd := exec.Command(p.path, args...)
	if p.libraries != nil {
		cmd.Env = append(os.Environ(), "LD_LIBRARY_PATH="+strings.Join(p.libraries, ":"))
	}
	return cmd
}

// Cache returns the folder in which an install.sh keeps the files that it has unpacked
// under a name.
func Cache(name string) (string, error) {
	base, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("no cache folder: %w; set XDG_CACHE_HOME", err)
	}
	return filepath.Join(base, "leafsql", name), nil
}
