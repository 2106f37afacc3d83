//go:build !unix || solaris || aix

package worker

import (
	"errors"
	"os"
)

func lockFile(path string) (*os.File, error) {
	return nil, errors.New("leafState needs flock, which this system does not have; leave leafState out")
}
