//go:build packages

package contrib

import (
	"encoding/json"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

var cached = flag.Bool("cached", false, "the image is built with this machine's build cache, and not from nothing")

// A store holds images, and sends no request to a registry.
type store struct {
	t     *testing.T
	flags []string
}

func newStore(t *testing.T) *store {
	s := &store{t, []string{"--root", t.TempDir(), "--runroot", t.TempDir(), "--storage-driver=vfs"}}
	t.Setenv("BUILDAH_ISOLATION", "chroot")
	return s
}

func (s *store) buildah(args ...string) string {
	s.t.Helper()
	return strings.TrimSpace(run(s.t, "", "buildah", append(slices.Clone(s.flags), args...)...))
}

// buildGoImage builds a replacement for the image golang: a shell, certificates, and this machine's Go, which is
// mounted.
func (s *store) buildGoImage() (volumes []string) {
	s.t.Helper()
	shell := "/bin/sh"
	files := []string{shell, "/etc/ssl/certs/ca-certificates.crt"}
	for _, word := range strings.Fields(run(s.t, "", "ldd", shell)) {
		if filepath.IsAbs(word) {
			files = append(files, word)
		}
	}
	root := s.t.TempDir()
	run(s.t, "", "cp", append([]string{"-L", "--parents", "-t", root}, files...)...)
	if err := os.Mkdir(filepath.Join(root, "tmp"), 0o777); err != nil {
		s.t.Fatal(err)
	}
	from := s.buildah("from", "scratch")
	s.buildah("copy", from, root, "/")
	s.buildah("config", "--env", "PATH=/usr/local/go/bin:/usr/bin:/bin", "--env", "GOPATH=/go", "--env", "GOTOOLCHAIN=local", "--env", "GOCACHE=/root/.cache/go-build", from)
	s.buildah("commit", from, "docker.io/library/golang:1.26")
	env := strings.Fields(run(s.t, "", "go", "env", "GOROOT", "GOMODCACHE", "GOCACHE"))
	volumes = []string{"--volume", env[0] + ":/usr/local/go:ro", "--volume", env[1] + ":/go/pkg/mod"}
	if *cached {
		volumes = append(volumes, "--volume", env[2]+":/root/.cache/go-build")
	}
	return volumes
}

// build runs the Dockerfile and returns a container of the image.
func (s *store) build(name string, args ...string) (container string) {
	s.t.Helper()
	s.t.Log(s.buildah(slices.Concat([]string{"bud", "--pull-never", "--tag", name}, args, []string{".."})...))
	return s.buildah("from", "--pull-never", name)
}

// commandInImage returns a command that runs in the root file system of an image, as a user without rights.
func commandInImage(t *testing.T, root string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
	cmd.Dir, cmd.Env = "/", []string{"PATH=/"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: root, Credential: &syscall.Credential{Uid: 65532, Gid: 65532}}
	return cmd
}

// TestImage builds the image in stages, without objects of an earlier build. The image contains the same program as the
// release, and certificates. The program and the demo run in it without other files.
func TestImage(t *testing.T) {
	archive, s := release(t), newStore(t)
	volumes := s.buildGoImage()
	root := s.buildah("mount", s.build("leafsql", append(slices.Clone(volumes), "--build-arg", "VERSION="+version)...))
	var files []string
	filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			files = append(files, strings.TrimPrefix(path, root))
		}
		return err
	})
	if !slices.Equal(files, []string{"/etc/ssl/certs/ca-certificates.crt", "/leafsql"}) {
		t.Errorf("files in the image = %v, want the certificates and /leafsql", files)
	}
	if string(read(t, filepath.Join(root, "leafsql"))) != string(read(t, filepath.Join(archive, "leafsql"))) {
		t.Error("program in the image differs from that of the release, want the same bytes")
	}
	var image struct {
		OCIv1 struct {
			Config struct {
				User            string
				Entrypoint, Cmd []string
				ExposedPorts    map[string]any
			}
		}
	}
	if err := json.Unmarshal([]byte(s.buildah("inspect", "--type", "image", "leafsql")), &image); err != nil {
		t.Fatal(err)
	}
	if c := image.OCIv1.Config; c.User != "65532:65532" || fmt.Sprint(c.Entrypoint, c.Cmd) != "[/leafsql] [help]" || c.ExposedPorts["8080/tcp"] == nil {
		t.Errorf("config = %+v, want user 65532, the entrypoint /leafsql and port 8080", c)
	}
	if out, err := commandInImage(t, root, "/leafsql", "version").CombinedOutput(); err != nil || !strings.HasPrefix(string(out), "leafsql "+version) {
		t.Errorf("leafsql version = %q, %v, want prefix %q", out, err, "leafsql "+version)
	}
	// The image has no time zones but those in the program.
	cmd := commandInImage(t, root, "/leafsql", "serve", "-listen", "127.0.0.1:0", "-token", "a-long-secret")
	cmd.Env = append(cmd.Env, "LEAFSQL_DSN=app:secret@tcp("+shop(t, allocSQL)+")/shop?loc=Asia%2FShanghai")
	checkServe(t, cmd, "a-long-secret")

	demo := s.build("demo", append(slices.Clone(volumes), "--target", "demo")...)
	s.t.Log(s.buildah("run", "--env", "LEAFSQL_DSN=demo:secret@tcp("+shop(t, composeSQL(t))+")/", demo, "--", "/quickstart", "-orders", "200", "-processes", "2"))
}
