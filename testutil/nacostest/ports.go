package nacostest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
)

// freePort gives an HTTP port whose derived ports are free as well: gRPC for
// clients and for the cluster above it, JRaft below. The same holds for so many
// further ports, each 10 above the one before. They stay below the range that
// the kernel gives to outgoing connections. The caller holds the boot lock
// until the servers have bound them.
func freePort(further int) (int, error) {
	for range 200 {
		first, free := 12000+rand.IntN(18000), true
		for p := first; free && p <= first+10*further; p += 10 {
			free = allFree(p, p+1000, p+1001, p-1000)
		}
		if free {
			return first, nil
		}
	}
	return 0, errors.New("nacostest: no free ports found")
}

func allFree(ports ...int) bool {
	for _, p := range ports {
		l, err := net.Listen("tcp", loopback(p))
		if err != nil {
			return false
		}
		if err := l.Close(); err != nil {
			return false
		}
	}
	return true
}

func loopback(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

// grpcAddr is where SDKs of 2.x and 3.x connect to.
func grpcAddr(port int) string { return fmt.Sprintf("127.0.0.1:%d", port+1000) }
