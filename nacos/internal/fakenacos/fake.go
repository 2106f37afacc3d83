// Package fakenacos is a small Nacos for tests: the part of the wire format
// that the worker source uses, in memory, and with faults that real servers
// have shown but do not show on demand.
//
//	s := fakenacos.Start(t, fakenacos.Modern)
//	s.Fault(func(f *fakenacos.Faults) { f.LoseReplies = 10 })
//	cfg := nacos.Config{Servers: []nacos.Server{{Host: "127.0.0.1", Port: s.Port, GRPCPort: s.GRPCPort}}}
//
// It is not a reference: real servers are tested as well.
package fakenacos

import (
	"crypto/md5"
	"encoding/hex"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
)

// Line is the line of versions that the server imitates.
type Line int

const (
	Modern Line = iota // 2.x and 3.x: gRPC
	Legacy             // 1.4: HTTP alone, integer instance ids, no compare-and-set
)

// Faults are the faults of the server from now on.
type Faults struct {
	ReadLag      time.Duration // reads return a config as it was this long ago
	StaleReads   int           // one of n reads returns a config as it was before the last write
	ListLag      time.Duration // lists contain an instance this long after its registration
	LoseReplies  int           // the connection of one of n publishes breaks after the write; 0: none
	RefuseRight  int           // one of n publishes with the right md5 is refused
	Lie          bool          // every compare-and-set is acknowledged without effect, as in 2.0.4
	LieWhenRight bool          // a wrong md5 is refused, a right one acknowledged without effect
	NoCompare    bool          // a write with the wrong md5 is executed
	ServeRefused bool          // reads return refused texts, for ReadLag
	AllCreators  bool          // concurrent writes to a missing config are all acknowledged
	NoHTTP       int           // status of the v1 API; 0: it works
	NoPersistent bool          // the gRPC request for persistent instances is not supported
	RefuseNaming bool          // registrations fail

	SameID       int // 1.4: one of n registrations gets the id of the previous registration
	Unregistered int // 1.4: one of n registrations is acknowledged and lost

	Username, Password string // required, if set
}

// Server is the fake server, on loopback ports. It is safe for concurrent use.
type Server struct {
	Port     int
	GRPCPort int

	line  Line
	http  *http.Server
	grpc  *grpc.Server
	gates []*gate

	mu        sync.Mutex
	faults    Faults
	configs   map[string]config
	instances map[string][]Instance // by service
	tokens    map[string]bool
	conns     map[string]func() // functions that end the registered streams
	resets    map[string]func() // functions that request clients to change the server
	publishes int
}

// config is a document and its earlier versions.
type config struct {
	text   string
	past   []version
	shown  string // a refused text that reads return
	until  time.Time
	exists bool
}

type version struct {
	text   string
	exists bool
	end    time.Time
}

// Instance is an entry of a service's list.
type Instance struct {
	InstanceID  string            `json:"instanceId"`
	IP          string            `json:"ip"`
	Port        int               `json:"port"`
	Ephemeral   bool              `json:"ephemeral"`
	ClusterName string            `json:"clusterName"`
	Metadata    map[string]string `json:"metadata"`
	since       time.Time
}

// Start starts a fake server that stops with the test.
func Start(tb testing.TB, line Line) *Server {
	tb.Helper()
	s := &Server{
		line: line, configs: make(map[string]config), instances: make(map[string][]Instance),
		tokens: make(map[string]bool), conns: make(map[string]func()), resets: make(map[string]func()),
	}
	web := s.listen(tb)
	s.Port = web.Addr().(*net.TCPAddr).Port
	s.http = &http.Server{Handler: s.handler()}
	go s.http.Serve(web)
	tb.Cleanup(func() { s.http.Close() })
	rpc := s.listen(tb)
	s.GRPCPort = rpc.Addr().(*net.TCPAddr).Port
	if line == Legacy {
		rpc.Close()
		return s
	}
	s.grpc = newGRPC(s)
	go s.grpc.Serve(rpc)
	tb.Cleanup(s.grpc.Stop)
	return s
}

func (s *Server) listen(tb testing.TB) net.Listener {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	g := &gate{Listener: l, conns: make(map[net.Conn]struct{})}
	s.gates = append(s.gates, g)
	return g
}

// Kill ends all connections, and closes new ones until Revive. Stored documents
// stay, as after kill -9.
func (s *Server) Kill() {
	for _, g := range s.gates {
		g.set(true)
	}
}

// Revive accepts connections again.
func (s *Server) Revive() {
	for _, g := range s.gates {
		g.set(false)
	}
}

// Fault changes the faults.
func (s *Server) Fault(change func(*Faults)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(&s.faults)
}

// Wipe deletes all documents and instances.
func (s *Server) Wipe() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.configs)
	clear(s.instances)
}

// Copy returns a function that restores the present documents.
func (s *Server) Copy() (restore func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	configs, instances := maps.Clone(s.configs), maps.Clone(s.instances)
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.configs, s.instances = maps.Clone(configs), maps.Clone(instances)
	}
}

// Break ends all connections.
func (s *Server) Break() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, end := range s.conns {
		end()
	}
}

// Reset requests all clients to change to another server, like a server that is about to be stopped.
func (s *Server) Reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, reset := range s.resets {
		reset()
	}
}

// Forget invalidates all tokens.
func (s *Server) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.tokens)
}

// Publishes returns the number of attempts to write a config.
func (s *Server) Publishes() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.publishes
}

// Instances returns the instances of a service, without lag.
func (s *Server) Instances(service string) []Instance {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.instances[service])
}

// Revert removes the metadata of all instances. Real servers do so if a health
// check writes an old state back.
func (s *Server) Revert() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, list := range s.instances {
		list = slices.Clone(list)
		for i := range list {
			list[i].Metadata = nil
		}
		s.instances[name] = list
	}
}

func oneIn(n int) bool { return n > 0 && rand.IntN(n) == 0 }

// remove deletes a config.
func (s *Server) remove(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.configs, id)
}

func sum(text string) string {
	h := md5.Sum([]byte(text))
	return hex.EncodeToString(h[:])
}

// outcome is the result of a publish.
type outcome int

const (
	done outcome = iota
	refused
	doneButLost
)

// publish writes a config. With casMD5 "" it does not compare.
func (s *Server) publish(id, text, casMD5 string) outcome {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.publishes++
	f, missing := s.faults, !s.configs[id].exists
	if missing && f.AllCreators {
		s.mu.Unlock()
		time.Sleep(5 * time.Millisecond) // time between comparison and write
		s.mu.Lock()
	}
	c := s.configs[id]
	right := casMD5 == "" || missing || f.NoCompare || casMD5 == sum(c.text)
	switch {
	case casMD5 != "" && c.exists && (f.Lie || right && f.LieWhenRight):
		return done
	case !right, c.exists && casMD5 != "" && oneIn(f.RefuseRight):
		if f.ServeRefused {
			c.shown, c.until = text, time.Now().Add(f.ReadLag)
			s.configs[id] = c
		}
		return refused
	}
	past := append(slices.Clip(c.past), version{c.text, c.exists, time.Now()})
	if len(past) > 8 {
		past = past[1:]
	}
	s.configs[id] = config{text: text, exists: true, past: past}
	if oneIn(f.LoseReplies) {
		return doneButLost
	}
	return done
}

// query returns a config with the lag and the faults of reads.
func (s *Server) query(id string) (text string, found bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.configs[id]
	if time.Now().Before(c.until) {
		return c.shown, true
	}
	if n := len(c.past); n > 0 && oneIn(s.faults.StaleReads) {
		return c.past[n-1].text, c.past[n-1].exists
	}
	at := time.Now().Add(-s.faults.ReadLag)
	for _, v := range c.past {
		if at.Before(v.end) {
			return v.text, v.exists
		}
	}
	return c.text, c.exists
}

// list returns the instances with the lag of lists.
func (s *Server) list(service string) []Instance {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := time.Now().Add(-s.faults.ListLag)
	return slices.DeleteFunc(slices.Clone(s.instances[service]), func(in Instance) bool { return in.since.After(at) })
}

// register adds an instance, or replaces the instance with the same ip:port.
func (s *Server) register(service string, in Instance) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.faults
	if f.RefuseNaming {
		return false
	}
	if s.line == Legacy && oneIn(f.Unregistered) {
		return true
	}
	in.since = time.Now()
	list := slices.Clone(s.instances[service])
	i := slices.IndexFunc(list, func(o Instance) bool { return o.IP == in.IP && o.Port == in.Port })
	switch {
	case s.line == Legacy && i >= 0:
		in.InstanceID, in.since = list[i].InstanceID, list[i].since
	case s.line == Legacy && len(list) > 0 && oneIn(f.SameID):
		in.InstanceID = list[len(list)-1].InstanceID
	case s.line == Legacy:
		in.InstanceID = unused(list)
	case in.InstanceID == "":
		in.InstanceID = newID() + "#DEFAULT#" + service
	}
	if i >= 0 {
		list[i] = in
	} else {
		list = append(list, in)
	}
	s.instances[service] = list
	return true
}

func (s *Server) deregister(service string, in Instance) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.faults.RefuseNaming {
		return false
	}
	s.instances[service] = slices.DeleteFunc(slices.Clone(s.instances[service]), func(o Instance) bool {
		return o.IP == in.IP && o.Port == in.Port
	})
	return true
}
