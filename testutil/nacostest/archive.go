package nacostest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
)

// archive is a file next to a version's jars. It contains the classes in the form
// that they have in a JVM's memory after the server's start. With it a start takes a
// quarter less processor time. A JVM of another version ignores it.
const archive = "classes.jsa"

// makeArchive starts a server and writes its classes to the archive.
func makeArchive(ctx context.Context, v Version, jars string) (err error) {
	s, err := newServer(v, Options{}, jars)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Stop()) }()
	s.recording = true
	if err := s.boot(ctx); err != nil {
		return err
	}
	pid := s.proc.cmd.Process.Pid
	defer os.Remove(fmt.Sprintf("/tmp/.java_pid%d", pid)) // socket between jcmd and the JVM
	made := filepath.Join(s.home, archive)
	if err := run(ctx, s.home, "jcmd", strconv.Itoa(pid), "VM.cds", "dynamic_dump", made); err != nil {
		return err
	}
	return moveFile(made, filepath.Join(jars, archive))
}

// moveFile copies a file, also to another file system. Other processes never see an incomplete copy.
func moveFile(from, to string) error {
	text, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	if err := os.WriteFile(to+".new", text, 0o644); err != nil {
		return err
	}
	return os.Rename(to+".new", to)
}
