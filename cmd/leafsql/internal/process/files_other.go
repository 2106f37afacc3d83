//go:build !unix

package process

import "math"

// maxOpenFiles returns the maximum number of open files of this process. The limit is unknown on this system.
func maxOpenFiles() int { return math.MaxInt }
