//go:build !linux

package proxy

import "net"

// A hangupWatch does nothing on this system. On Linux it detects that a server ends connections while their
// clients are idle; on this system, clients notice the end with their next command.
type hangupWatch struct{}

func newWatch() (*hangupWatch, error)                      { return &hangupWatch{}, nil }
func (w *hangupWatch) add(net.Conn, func()) (int32, error) { return 0, nil }
func (w *hangupWatch) remove(int32)                        {}
func (w *hangupWatch) close() error                        { return nil }
