package nacostest

import (
	"fmt"
	"net"
	"strconv"
)

// portOffsets contains the offsets of a server's ports from its HTTP port: HTTP,
// gRPC for clients, gRPC for the cluster, and JRaft. The caller holds the boot
// lock until the servers have bound these ports.
var portOffsets = []int{0, 1000, 1001, -1000}

func loopback(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

// grpcAddr returns the address to which SDKs of 2.x and 3.x connect.
func grpcAddr(port int) string { return fmt.Sprintf("127.0.0.1:%d", port+1000) }
