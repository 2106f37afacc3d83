//go:build !unix

package process

import "math"

// openFiles returns the maximum number of open files of this process. The limit is unknown on this system.
func openFiles() int { return math.MaxInt }
