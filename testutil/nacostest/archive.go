package nacostest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
)

// archive is the file, beside a version's jars, with the classes as a JVM has
// them in memory when the server is up. A boot that reads them there takes a
// quarter less of the processor. A JVM that it is not of ignores it.
const archive = "classes.jsa"

// makeArchive boots a server for its classes.
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
	defer os.Remove(fmt.Sprintf("/tmp/.java_pid%d", pid)) // where jcmd and the JVM met
	made := filepath.Join(s.home, archive)
	if err := run(ctx, s.home, "jcmd", strconv.Itoa(pid), "VM.cds", "dynamic_dump", made); err != nil {
		return err
	}
	return move(made, filepath.Join(jars, archive))
}

// move works across file systems, and nobody sees half of the file.
func move(from, to string) error {
	text, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	if err := os.WriteFile(to+".new", text, 0o644); err != nil {
		return err
	}
	return os.Rename(to+".new", to)
}
