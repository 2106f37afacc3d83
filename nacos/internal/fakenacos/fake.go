// Package fakenacos is a small Nacos for tests: the part of the wire format
// that the worker source uses, in memory, and with faults that real servers
// have shown but do not show on demand.
//
//	s := fakenacos.Start(t, fakenacos.Modern)
//	s.Fault(func(f *fakenacos.Faults) { f.LoseReplies = 10 })
//	cfg := nacos.Config{Servers: []nacos.Server{{Host: "127.0.0.1", Port: s.Port, GRPCPort: s.GRPCPort}}}
//
// It is no reference: what a server does is tested on real ones.
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

// Line is what a server can do at all.
type Line int

const (
	Modern Line = iota // 2.x and 3.x: gRPC
	Legacy             // 1.4: HTTP alone, integer instance ids, no compare-and-set
)

// Faults are what goes wrong, from now on.
type Faults struct {
	ReadLag      time.Duration // reads show a config as it was so long ago
	StaleReads   int           // of n reads, one shows a config as it was before the last write
	ListLag      time.Duration // and lists an instance
	LoseReplies  int           // of n publishes, the connection of one breaks after it was done; 0: none
	RefuseRight  int           // of n publishes with the right md5, one is refused
	Lie          bool          // ok to every compare-and-set, without effect, as 2.0.4
	LieWhenRight bool          // a wrong md5 is refused, a right one told ok without effect
	NoCompare    bool          // a write with the wrong md5 is carried out
	ServeRefused bool          // reads show what was refused, for ReadLag
	AllCreators  bool          // writes that find a config missing at once are all told ok
	NoHTTP       int           // status of the v1 API; 0: it is there
	NoPersistent bool          // the gRPC request for persistent instances is unknown
	RefuseNaming bool          // registrations fail

	SameID       int // 1.4: of n registrations, one gets the id of the one before
	Unregistered int // 1.4: of n registrations, one is told ok and lost

	Username, Password string // wanted, if set
}

// Server is the fake, on loopback ports.
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
	conns     map[string]func() // of registered streams: how to end them
	resets    map[string]func() // how to ask them to go
	publishes int
}

// config is a document and what it was.
type config struct {
	text   string
	past   []version
	shown  string // a refused text that reads show
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

// Start starts a fake that stops with the test.
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

// Kill ends all connections, and those that come, until Revive. What was
// stored stays, as after kill -9.
func (s *Server) Kill() {
	for _, g := range s.gates {
		g.set(true)
	}
}

// Revive lets clients in again.
func (s *Server) Revive() {
	for _, g := range s.gates {
		g.set(false)
	}
}

// Fault changes what goes wrong.
func (s *Server) Fault(change func(*Faults)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(&s.faults)
}

// Wipe loses all that was stored.
func (s *Server) Wipe() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.configs)
	clear(s.instances)
}

// Copy gives a function that brings back what is stored now.
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

// Break cuts all connections.
func (s *Server) Break() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, end := range s.conns {
		end()
	}
}

// Reset asks all clients to go to another server, as one that is drained does.
func (s *Server) Reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, reset := range s.resets {
		reset()
	}
}

// Forget makes all tokens invalid.
func (s *Server) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.tokens)
}

// Publishes is how many writes of configs were tried.
func (s *Server) Publishes() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.publishes
}

// Instances lists a service, without lag.
func (s *Server) Instances(service string) []Instance {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.instances[service])
}

// Revert takes the metadata of all instances away, as a health check that
// wrote an old state back has done.
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

// outcome of a publish.
type outcome int

const (
	done outcome = iota
	refused
	doneButLost
)

// publish writes a config; casMD5 "" writes in any case.
func (s *Server) publish(id, text, casMD5 string) outcome {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.publishes++
	f, missing := s.faults, !s.configs[id].exists
	if missing && f.AllCreators {
		s.mu.Unlock()
		time.Sleep(5 * time.Millisecond) // from looking to writing
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

// query reads a config as reads show it.
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

// list gives the instances that lists show.
func (s *Server) list(service string) []Instance {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := time.Now().Add(-s.faults.ListLag)
	return slices.DeleteFunc(slices.Clone(s.instances[service]), func(in Instance) bool { return in.since.After(at) })
}

// register adds an instance, or replaces the one of its ip:port.
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
