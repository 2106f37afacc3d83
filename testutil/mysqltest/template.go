//go:build unix

package mysqltest

import (
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"strings"
)

// prepareData copies initialised, empty system tables to datadir. They are created once for each server version and
// kept in the cache folder, as copying is much faster than creating them.
func (b binary) prepareData(datadir string) error {
	var template string
	err := errors.ErrUnsupported
	if !b.tidb {
		template, err = b.templateDir()
	}
	if err != nil {
		if err := os.Mkdir(datadir, 0o700); err != nil {
			return fmt.Errorf("mysqltest: %w", err)
		}
		return b.initialize(datadir)
	}
	if err := os.CopyFS(datadir, os.DirFS(template)); err != nil {
		return fmt.Errorf("mysqltest: copy the data directory: %w", err)
	}
	return nil
}

// templateDir returns a data directory to copy, and creates it if there is none yet. Test binaries that start
// together may all create one; the first that is complete is used.
func (b binary) templateDir() (string, error) {
	cache, err := cacheDir()
	if err != nil {
		return "", err
	}
	recipe := strings.Join(append(b.initArgs(""), b.path, b.version, rootUser), "\n")
	final := filepath.Join(cache, fmt.Sprintf("data-%s-%08x", b.kind, crc32.ChecksumIEEE([]byte(recipe))))
	if _, err := os.Stat(final); err == nil {
		return final, nil
	}
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp(cache, "new-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	datadir := filepath.Join(dir, "data")
	if err := os.Mkdir(datadir, 0o700); err != nil {
		return "", err
	}
	if err := b.initialize(datadir); err != nil {
		return "", err
	}
	os.Remove(filepath.Join(datadir, "auto.cnf")) // a server's identity must not be copied
	if err := os.Rename(datadir, final); err != nil {
		if _, err := os.Stat(final); err != nil {
			return "", err
		}
	}
	return final, nil
}
