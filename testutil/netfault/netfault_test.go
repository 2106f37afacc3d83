package netfault_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/leafsql/leafsql/testutil/netfault"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// echo starts a server that sends back all input, and counts the bytes.
func echo(t *testing.T) (addr string, got *atomic.Int64) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	got = new(atomic.Int64)
	go func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				buf := make([]byte, 64<<10)
				for {
					n, err := conn.Read(buf)
					got.Add(int64(n))
					if _, werr := conn.Write(buf[:n]); err != nil || werr != nil {
						return
					}
				}
			}()
		}
	}()
	return ln.Addr().String(), got
}

func dial(t *testing.T, addr string) *net.TCPConn {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn.(*net.TCPConn)
}

// ask sends a word and waits until it comes back.
func ask(conn net.Conn, word string, patience time.Duration) error {
	conn.SetDeadline(time.Now().Add(patience))
	if _, err := conn.Write([]byte(word)); err != nil {
		return err
	}
	buf := make([]byte, len(word))
	if _, err := io.ReadFull(conn, buf); err != nil {
		return err
	}
	if string(buf) != word {
		return errors.New("got " + string(buf))
	}
	return nil
}

const long = 10 * time.Second

func TestForwardsLargeDataAndHalfClose(t *testing.T) {
	addr, _ := echo(t)
	conn := dial(t, netfault.Start(t, addr).Addr())
	sent := bytes.Repeat([]byte("0123456789abcdef"), 1<<18) // 4 MiB
	go func() {
		conn.Write(sent)
		conn.CloseWrite()
	}()
	got, err := io.ReadAll(conn)
	if err != nil || !bytes.Equal(got, sent) {
		t.Fatalf("echoed %d bytes, %v, want the %d bytes sent", len(got), err, len(sent))
	}
}

func TestCutResetsAndNewConnectionsWork(t *testing.T) {
	addr, _ := echo(t)
	p := netfault.Start(t, addr)
	conn := dial(t, p.Addr())
	if err := ask(conn, "one", long); err != nil {
		t.Fatal(err)
	}
	p.Cut()
	if err := ask(conn, "two", long); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("after Cut: %v, want a broken connection", err)
	}
	if err := ask(dial(t, p.Addr()), "three", long); err != nil {
		t.Fatal(err)
	}
}

func TestDownRefusesUntilUpOnTheSamePort(t *testing.T) {
	addr, _ := echo(t)
	p := netfault.Start(t, addr)
	before := p.Addr()
	p.Down()
	if _, err := net.Dial("tcp", before); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Fatalf("dial while down: %v, want a refusal", err)
	}
	if err := p.Up(); err != nil {
		t.Fatal(err)
	}
	if p.Addr() != before {
		t.Fatalf("Addr() = %s, want %s", p.Addr(), before)
	}
	if err := ask(dial(t, before), "again", long); err != nil {
		t.Fatal(err)
	}
}

// pair returns the two ends of a connection through a new proxy.
func pair(t *testing.T) (p *netfault.Proxy, client, server net.Conn) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	p = netfault.Start(t, ln.Addr().String())
	client = dial(t, p.Addr())
	if server, err = ln.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	return p, client, server
}

// travel sends a word in one direction and returns how long it took.
func travel(t *testing.T, from, to net.Conn) time.Duration {
	t.Helper()
	start := time.Now()
	to.SetReadDeadline(start.Add(long))
	if _, err := from.Write([]byte("word")); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(to, make([]byte, 4)); err != nil {
		t.Fatal(err)
	}
	return time.Since(start)
}

func TestDelayIsPerDirection(t *testing.T) {
	p, client, server := pair(t)
	const delay = 50 * time.Millisecond
	for _, dir := range []netfault.Direction{netfault.ToServer, netfault.ToClient, netfault.Both} {
		p.Heal()
		p.Delay(dir, delay)
		if took := travel(t, client, server); dir&netfault.ToServer != 0 && took < delay {
			t.Errorf("direction %d: to the server in %v, want at least %v", dir, took, delay)
		}
		if took := travel(t, server, client); dir&netfault.ToClient != 0 && took < delay {
			t.Errorf("direction %d: to the client in %v, want at least %v", dir, took, delay)
		}
	}
}

func TestDropLeavesTheOtherDirectionAlone(t *testing.T) {
	p, client, server := pair(t)
	for dir, way := range map[netfault.Direction][2]net.Conn{netfault.ToServer: {server, client}, netfault.ToClient: {client, server}} {
		p.Drop(dir)
		travel(t, way[0], way[1])
		p.Heal() // nothing was lost, so the connection stays open
		travel(t, client, server)
		travel(t, server, client)
	}
}

func TestDelayIsLatencyOnly(t *testing.T) {
	addr, _ := echo(t)
	p := netfault.Start(t, addr)
	conn := dial(t, p.Addr())
	// Chunks are delayed in parallel: one after the other, this would need 100 delays in each direction.
	p.Delay(netfault.Both, 200*time.Millisecond)
	conn.SetDeadline(time.Now().Add(long))
	for range 100 {
		conn.Write([]byte("x"))
		time.Sleep(100 * time.Microsecond)
	}
	if _, err := io.ReadFull(conn, make([]byte, 100)); err != nil {
		t.Fatal(err)
	}
}

func TestDropIsSilentPerDirectionAndHealCuts(t *testing.T) {
	addr, got := echo(t)
	for dir, arrives := range map[netfault.Direction]int64{netfault.ToServer: 0, netfault.Both: 0, netfault.ToClient: 4} {
		p := netfault.Start(t, addr)
		lossy, whole := dial(t, p.Addr()), dial(t, p.Addr())
		for _, c := range []net.Conn{lossy, whole} {
			if err := ask(c, "hello", long); err != nil {
				t.Fatal(err)
			}
		}
		got.Store(0)
		p.Drop(dir)
		if err := ask(lossy, "lost", 100*time.Millisecond); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatalf("direction %d: %v, want silence", dir, err)
		}
		if got.Load() != arrives {
			t.Errorf("direction %d: the server got %d bytes, want %d", dir, got.Load(), arrives)
		}
		p.Heal()
		if err := ask(lossy, "dead", long); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("direction %d: connection that lost bytes: error %v after Heal, want its end", dir, err)
		}
		if err := ask(whole, "fine", long); err != nil {
			t.Errorf("direction %d: connection that lost nothing: error %v after Heal, want nil", dir, err)
		}
	}
}

func TestFilterLosesOneReply(t *testing.T) {
	addr, got := echo(t)
	p := netfault.Start(t, addr)
	conn := dial(t, p.Addr())
	p.Filter(func(dir netfault.Direction, chunk []byte) netfault.Verdict {
		if dir == netfault.ToClient && bytes.Contains(chunk, []byte("COMMIT")) {
			return netfault.Reset
		}
		return netfault.Pass
	})
	if err := ask(conn, "BEGIN", long); err != nil {
		t.Fatal(err)
	}
	if err := ask(conn, "COMMIT", long); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("%v, want a broken connection", err)
	}
	if want := int64(len("BEGINCOMMIT")); got.Load() != want {
		t.Errorf("the server got %d bytes, want %d: the request itself must pass", got.Load(), want)
	}
	if err := ask(dial(t, p.Addr()), "next", long); err != nil {
		t.Fatal(err)
	}
}

func TestServerAwayLooksLikeAReset(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ln.Close()
	p := netfault.Start(t, ln.Addr().String())
	conn, err := net.Dial("tcp", p.Addr())
	if err == nil { // the reset may come so soon that the dial fails
		defer conn.Close()
		err = ask(conn, "anyone", long)
	}
	if err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("%v, want a broken connection", err)
	}
}

func TestDropSwallowsTheGoodbye(t *testing.T) {
	addr, _ := echo(t)
	p := netfault.Start(t, addr)
	conn := dial(t, p.Addr())
	if err := ask(conn, "hello", long); err != nil {
		t.Fatal(err)
	}
	p.Drop(netfault.ToServer)
	conn.Close()
	time.Sleep(50 * time.Millisecond) // time for the end of the stream to have an effect
	if n := p.Conns(); n != 1 {
		t.Errorf("%d connections after the client left unheard, want 1: the server must not know", n)
	}
	p.Heal()
	for deadline := time.Now().Add(long); p.Conns() != 0; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("connections %v after Heal = %d, want 0", long, p.Conns())
		}
	}
}

func TestCutAfterDeliversWhatComesBefore(t *testing.T) {
	addr, got := echo(t)
	p := netfault.Start(t, addr)
	for n := range 6 {
		conn := dial(t, p.Addr())
		if err := ask(conn, "x", long); err != nil {
			t.Fatal(err)
		}
		before := got.Load()
		p.CutAfter(netfault.ToServer, n)
		conn.Write([]byte("123456"))
		if _, err := io.Copy(io.Discard, conn); err == nil {
			t.Fatal("Copy() error = nil, want a reset of the connection")
		}
		for begin := time.Now(); got.Load()-before < int64(n); time.Sleep(time.Millisecond) {
			if time.Since(begin) > long {
				t.Fatalf("received bytes = %d, want %d", got.Load()-before, n)
			}
		}
		if more := got.Load() - before; more != int64(n) {
			t.Fatalf("received bytes = %d, want %d", more, n)
		}
		p.CutAfter(netfault.ToClient, n)
		conn = dial(t, p.Addr())
		conn.Write([]byte("123456"))
		if echoed, err := io.ReadAll(conn); err == nil || string(echoed) != "123456"[:n] {
			t.Fatalf("echoed %q, %v, want %d bytes and a reset", echoed, err, n)
		}
		if err := ask(dial(t, p.Addr()), "once", long); err != nil {
			t.Fatal(err)
		}
	}
}

func TestSwitchKeepsOpenConnections(t *testing.T) {
	first, gotFirst := echo(t)
	second, gotSecond := echo(t)
	p := netfault.Start(t, first)
	old := dial(t, p.Addr())
	if err := ask(old, "a", long); err != nil {
		t.Fatal(err)
	}
	p.Switch(second)
	if err := errors.Join(ask(old, "b", long), ask(dial(t, p.Addr()), "c", time.Second)); err != nil {
		t.Fatal(err)
	}
	if gotFirst.Load() != 2 || gotSecond.Load() != 1 {
		t.Fatalf("requests = %d at the first server, %d at the second, want 2 and 1", gotFirst.Load(), gotSecond.Load())
	}
}

func TestSilenceIsOfTheNextConnections(t *testing.T) {
	addr, got := echo(t)
	p := netfault.Start(t, addr)
	before := dial(t, p.Addr())
	if err := ask(before, "before", long); err != nil {
		t.Fatal(err)
	}
	p.Silence(2)
	silent := []net.Conn{dial(t, p.Addr()), dial(t, p.Addr())}
	for _, conn := range silent {
		if err := ask(conn, "silent", 100*time.Millisecond); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("request on a silent connection: error %v, want os.ErrDeadlineExceeded", err)
		}
	}
	if err := errors.Join(ask(before, "before", long), ask(dial(t, p.Addr()), "after", long)); err != nil {
		t.Error(err)
	}
	if n := got.Load(); n != 17 {
		t.Errorf("received bytes = %d, want 17", n)
	}
}
