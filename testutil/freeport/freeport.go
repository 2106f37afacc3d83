// Package freeport finds TCP ports on 127.0.0.1 for servers that cannot choose
// one themselves.
//
//	port, err := freeport.Find(0, 1000) // port and port+1000 are free
//
// The ports are below the range that the kernel gives to outgoing connections,
// so that none of those takes the port of a server that is to be started again.
// They are not reserved: another process may find the same one before a server
// listens on it, which is rare, as each is drawn at random.
package freeport

import (
	"errors"
	"math/rand/v2"
	"net"
	"strconv"
)

const lowest, highest = 12000, 30000

// Find returns a port p for which p+o is free for every offset o, each of which
// is between -2000 and 2000. Without offsets it is p that is free.
func Find(offsets ...int) (int, error) {
	if len(offsets) == 0 {
		offsets = []int{0}
	}
	for range 200 {
		p := lowest + rand.IntN(highest-lowest)
		if free(p, offsets) {
			return p, nil
		}
	}
	return 0, errors.New("freeport: no free ports found")
}

func free(p int, offsets []int) bool {
	for _, o := range offsets {
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(p+o)))
		if err != nil || l.Close() != nil {
			return false
		}
	}
	return true
}
