package nacostest

import (
	"fmt"
	"net"
	"strconv"
)

// portOffsets has the offsets of the ports that belong to an HTTP port: gRPC for
// clients and for the cluster above it, JRaft below. The caller holds the boot
// lock until the servers have bound them.
var portOffsets = []int{0, 1000, 1001, -1000}

func loopback(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

// grpcAddr returns the address to which SDKs of 2.x and 3.x connect.
func grpcAddr(port int) string { return fmt.Sprintf("127.0.0.1:%d", port+1000) }
