package nacostest

import (
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// servers contains, for each version, the files with which Maven fetches the
// server and the files that the server needs to run.
//
//go:embed servers
var servers embed.FS

// cacheDir returns the folder in which the servers' jars are kept between runs.
func cacheDir() (string, error) {
	base, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("nacostest: no cache folder: %w; set XDG_CACHE_HOME", err)
	}
	dir := filepath.Join(base, "leafsql", "nacos")
	return dir, os.MkdirAll(dir, 0o755)
}

// lockFile acquires an exclusive lock that all test processes of this user share.
// The lock is released when unlock is called or the process ends.
func lockFile(ctx context.Context, name string) (unlock func(), err error) {
	dir, err := cacheDir()
	if err != nil {
		return nil, err
	}
	f, err := os.OpenFile(filepath.Join(dir, name), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	for {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return func() { f.Close() }, nil
		}
		if errors.Is(err, syscall.EWOULDBLOCK) || errors.Is(err, syscall.EINTR) {
			select {
			case <-time.After(50 * time.Millisecond):
				continue
			case <-ctx.Done():
				err = context.Cause(ctx)
			}
		}
		f.Close()
		return nil, fmt.Errorf("nacostest: locking %s: %w", f.Name(), err)
	}
}

// install returns the folder with the version's jars under lib and its compiled
// starter as boot.jar. It fetches or creates missing files.
func install(ctx context.Context, v Version) (string, error) {
	for _, tool := range []string{"java", "javac", "jar", "jcmd", "mvn"} {
		if _, err := exec.LookPath(tool); err != nil {
			return "", fmt.Errorf("nacostest: %w; run testutil/nacostest/install.sh, which installs a JDK and Maven", err)
		}
	}
	src := path.Join("servers", string(v))
	sum, err := digestFiles(src)
	if err != nil {
		return "", fmt.Errorf("nacostest: unknown version %s: %w", v, err)
	}
	unlock, err := lockFile(ctx, "install.lock")
	if err != nil {
		return "", err
	}
	defer unlock()
	cache, err := cacheDir()
	if err != nil {
		return "", err
	}
	done := filepath.Join(cache, string(v)+"-"+sum)
	if _, err := os.Stat(done); err != nil {
		if err := fetch(ctx, src, done); err != nil {
			return "", err
		}
	}
	return done, nil
}

// fetch creates the folder done with the packages that src, a folder of servers,
// requires.
func fetch(ctx context.Context, src, done string) error {
	tmp, err := os.MkdirTemp(filepath.Dir(done), "installing-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	sub, err := fs.Sub(servers, src)
	if err != nil {
		return err
	}
	if err := os.CopyFS(tmp, sub); err != nil {
		return err
	}
	err = run(ctx, tmp, "mvn", "-q", "-B", "-f", "pom.xml", "dependency:copy-dependencies",
		"-DoutputDirectory=lib", "-DincludeScope=runtime")
	if err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(tmp, "Boot.java")); err == nil {
		if err := run(ctx, tmp, "javac", "-proc:none", "-cp", "lib/*", "-d", "classes", "Boot.java"); err != nil {
			return err
		}
		if err := run(ctx, tmp, "jar", "--create", "--file", "boot.jar", "-C", "classes", "."); err != nil {
			return err
		}
	}
	return os.Rename(tmp, done)
}

// digestFiles returns a digest of a version's files, so that a changed pom.xml leads
// to a new installation.
func digestFiles(dir string) (string, error) {
	h := sha256.New()
	io.WriteString(h, "boot.jar")
	for _, name := range []string{"pom.xml", "Boot.java"} {
		b, err := servers.ReadFile(path.Join(dir, name))
		if errors.Is(err, fs.ErrNotExist) && name == "Boot.java" {
			continue
		}
		if err != nil {
			return "", err
		}
		h.Write(b)
	}
	return hex.EncodeToString(h.Sum(nil))[:12], nil
}

func run(ctx context.Context, dir, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.WaitDelay = dir, time.Second
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("nacostest: %s %s: %w\n%s", name, strings.Join(args, " "), err, out)
	}
	return nil
}
