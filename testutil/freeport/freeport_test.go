package freeport

import (
	"fmt"
	"net"
	"runtime"
	"testing"
)

func TestFindReturnsFreePorts(t *testing.T) {
	p, err := Find(0, 10, -1000)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", p+10))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if isFree(p, []int{0, 10}) {
		t.Errorf("isFree(%d) = true while port %d is in use, want false", p, p+10)
	}
	if !isFree(p, []int{0, 11}) {
		t.Errorf("isFree(%d) = false, want true", p)
	}
}

func TestTakenPortsAreReservedOnce(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("ports are held on Linux alone")
	}
	p, err := Find()
	if err != nil {
		t.Fatal(err)
	}
	if reservePort(p, []int{0}) {
		t.Errorf("reservePort(%d) = true a second time, want false", p)
	}
	if reservePort(p-1, []int{0, 1}) {
		t.Errorf("reservePort(%d) with a reserved neighbour = true, want false", p-1)
	}
	if !reservePort(p-1, []int{0}) {
		t.Errorf("reservePort(%d) = false, want true", p-1)
	}
}
