// Package freeport finds TCP ports on 127.0.0.1 for servers that cannot choose
// one themselves.
//
//	port, err := freeport.Find(0, 1000) // port and port+1000 are free
//
// The ports are below the range that the kernel uses for outgoing connections,
// so no outgoing connection can take the port of a server while it restarts.
// On Linux no other process finds them while this process lives, whether a
// server listens on them or not.
package freeport

import (
	"errors"
	"math/rand/v2"
	"net"
	"runtime"
	"strconv"
	"sync"
)

const minPort, maxPort = 12000, 30000

// Find returns a port p for which p+o is free for every offset o, each of which
// is between -2000 and 2000. Without offsets, p itself is free.
func Find(offsets ...int) (int, error) {
	if len(offsets) == 0 {
		offsets = []int{0}
	}
	for range 200 {
		p := minPort + rand.IntN(maxPort-minPort)
		if reservePort(p, offsets) {
			return p, nil
		}
	}
	return 0, errors.New("freeport: no free ports found")
}

var reserved struct {
	sync.Mutex
	marks []net.Listener
}

// reservePort reports whether all of the ports are free. It reserves each port
// with a mark before it checks them: a check listens on a port for a moment, and
// must not disturb a server of another process that is about to listen there. A
// mark is an abstract unix socket: it has no file, belongs to the same network
// namespace as the port, and is removed by the kernel when the process ends.
func reservePort(p int, offsets []int) bool {
	if runtime.GOOS != "linux" {
		return isFree(p, offsets)
	}
	var marks []net.Listener
	for _, o := range offsets {
		m, err := net.Listen("unix", "@leafsql-port-"+strconv.Itoa(p+o))
		if err != nil {
			break
		}
		marks = append(marks, m)
	}
	if len(marks) < len(offsets) || !isFree(p, offsets) {
		for _, m := range marks {
			m.Close()
		}
		return false
	}
	reserved.Lock()
	defer reserved.Unlock()
	reserved.marks = append(reserved.marks, marks...)
	return true
}

func isFree(p int, offsets []int) bool {
	for _, o := range offsets {
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(p+o)))
		if err != nil || l.Close() != nil {
			return false
		}
	}
	return true
}
