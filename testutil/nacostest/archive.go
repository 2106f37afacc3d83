package nacostest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
)

// archive is a file next to a version's jars. It contains the classes in the form
// that they have in a JVM's memory after the server's start. With it a start takes a
// quarter less processor time. A JVM of another version ignores it.
const archive = "classes.jsa"

func (s *Server) archive() string { return filepath.Join(s.jars, archive) }

// hasArchive reports whether an earlier start of the version has written the archive.
func (s *Server) hasArchive() bool {
	_, err := os.Stat(s.archive())
	return err == nil
}

// writeArchive writes the classes of a running server, which has recorded them, to the archive.
func (s *Server) writeArchive(ctx context.Context) error {
	pid := s.proc.cmd.Process.Pid
	defer os.Remove(fmt.Sprintf("/tmp/.java_pid%d", pid)) // socket between jcmd and the JVM
	made := filepath.Join(s.home, archive)
	if err := run(ctx, s.home, "jcmd", strconv.Itoa(pid), "VM.cds", "dynamic_dump", made); err != nil {
		return err
	}
	if err := moveFile(made, s.archive()); err != nil {
		return err
	}
	return os.Remove(made)
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
