package server

import (
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/url"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

var malformed = flag.Int("malformed", 10_000, "how many requests TestMalformed sends")

// broken are functions that make requests with one fault each.
var broken = []func(*rand.Rand) string{
	func(r *rand.Rand) string { return noise(r, 1+r.IntN(200)) + "\r\n\r\n" },
	func(r *rand.Rand) string { return request(word(r), "/api/segment/get/orders", "") },
	func(r *rand.Rand) string { return request("GET", "/"+noise(r, r.IntN(300)), "") },
	func(r *rand.Rand) string {
		return request("GET", "/api/segment/get/"+url.PathEscape(noise(r, r.IntN(200))), "") // may be a valid tag
	},
	func(r *rand.Rand) string { return request("GET", "/api/segment/get/"+word(r), "") },
	func(r *rand.Rand) string { return request("GET", "/api/segment/get/%"+word(r), "") },
	func(r *rand.Rand) string {
		return request("GET", "/api/segment/get/orders?n="+url.QueryEscape(noise(r, 1+r.IntN(30))), "")
	},
	func(r *rand.Rand) string {
		return request("GET", "/api/segment/get/orders?"+strings.Repeat("n&", r.IntN(1000)), "")
	},
	func(r *rand.Rand) string {
		return request("GET", "/decodeSnowflakeId?snowflakeId="+url.QueryEscape(noise(r, r.IntN(30))), "")
	},
	func(r *rand.Rand) string {
		return request("GET", "/"+strings.Repeat("../", r.IntN(1000))+word(r), "")
	},
	func(r *rand.Rand) string { return request("GET", "/"+strings.Repeat("a", r.IntN(30_000)), "") },
	func(r *rand.Rand) string {
		return request("GET", "/db", strings.Repeat("X-"+word(r)+": "+word(r)+"\r\n", r.IntN(2000)))
	},
	func(r *rand.Rand) string { return request("GET", "/db", noise(r, 50)+": x\r\n") },
	func(r *rand.Rand) string { return request("GET", "/db", "X: "+noise(r, 50)+"\r\n") },
	func(r *rand.Rand) string { return "GET /db HTTP/1.1\r\n\r\n" }, // without a host
	func(r *rand.Rand) string {
		return fmt.Sprintf("GET /db HTTP/%d.%d\r\nHost: x\r\n\r\n", r.IntN(12), r.IntN(12))
	},
	func(r *rand.Rand) string { return request("GET", "/db", "Transfer-Encoding: "+word(r)+"\r\n") },
	func(r *rand.Rand) string {
		return request("POST", "/db", "Transfer-Encoding: chunked\r\n") + word(r) + "\r\n" + noise(r, 100)
	},
	func(r *rand.Rand) string { return request("GET", "/db", "Content-Length: "+word(r)+"\r\n") },
	func(r *rand.Rand) string { return request("GET", "/db", "Content-Length: -1\r\n") },
	func(r *rand.Rand) string {
		return request("GET", "/api/segment/get/orders", "Content-Length: 100\r\n") + noise(r, 100)
	},
	func(r *rand.Rand) string { return request("GET", "/db", "Expect: "+word(r)+"\r\n") },
	func(r *rand.Rand) string { return request("GET", "/healthz", "Authorization: "+word(r)+"\r\n") },
	func(r *rand.Rand) string {
		return request("OPTIONS", "*", "") + request("CONNECT", word(r)+":1", "") + request("TRACE", "/", "")
	},
	func(r *rand.Rand) string { return request("PRI", "*", "") + "SM\r\n\r\n" + noise(r, 100) },
	func(r *rand.Rand) string { return "\x16\x03\x01" + noise(r, 200) }, // TLS
	func(r *rand.Rand) string { // truncated
		text := request("GET", "/api/segment/get/orders", "")
		return text[:r.IntN(len(text)-4)]
	},
}

func request(method, target, header string) string {
	return method + " " + target + " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n" + header + "\r\n"
}

func noise(r *rand.Rand, n int) string {
	text := make([]byte, n)
	for i := range text {
		text[i] = byte(r.Uint32())
	}
	return string(text)
}

func word(r *rand.Rand) string {
	text := make([]byte, 1+r.IntN(12))
	for i := range text {
		text[i] = byte('a' + r.IntN(26))
	}
	return string(text)
}

// TestMalformed: no request makes the server fail or leak resources. It answers 503 to too many concurrent
// requests for unknown tags.
func TestMalformed(t *testing.T) {
	_, dsn := database(t, 1000, "orders")
	_, server, _ := run(t, Config{DSN: dsn})
	get(t, server+"/api/segment/get/orders").want(t, "1000")
	var mu sync.Mutex
	codes := map[string]int{}
	send := func(text string) {
		c, err := net.Dial("tcp", strings.TrimPrefix(server, "http://"))
		if err != nil {
			t.Error(err)
			return
		}
		defer c.Close()
		c.SetDeadline(time.Now().Add(time.Minute))
		go func() {
			io.WriteString(c, text) // fails if the server has answered already
			c.(*net.TCPConn).CloseWrite()
		}()
		answer, _ := io.ReadAll(c) // a reset after the answer is allowed
		code := "none"
		if len(answer) > 12 {
			code = string(answer[9:12])
		}
		mu.Lock()
		codes[code]++
		mu.Unlock()
		if code[0] == '5' && code != "503" {
			t.Errorf("%q is answered %q", text, answer)
		}
	}
	flood := func(n int) (heap uint64, goroutines int) {
		var wg sync.WaitGroup
		for i := range 64 {
			wg.Go(func() {
				r := rand.New(rand.NewPCG(uint64(n), uint64(i)))
				for k := i; k < n; k += 64 {
					send(broken[k/64%len(broken)](r))
				}
			})
		}
		wg.Wait()
		eventually(t, "an end of its goroutines", func() bool { goroutines = runtime.NumGoroutine(); return goroutines < 100 })
		var m runtime.MemStats
		for range 3 {
			runtime.GC()
		}
		runtime.ReadMemStats(&m)
		return m.HeapAlloc, goroutines
	}
	before, running := flood(2000)
	after, still := flood(*malformed)
	t.Logf("%d requests: answers %v; heap %d KiB before and %d KiB after, goroutines %d and %d", *malformed, codes, before>>10, after>>10, running, still)
	if after > before+1<<20 {
		t.Error("memory grew")
	}
	get(t, server+"/readyz").want(t, "ready\n")
	for _, code := range []string{"200", "400", "404", "405", "413", "431"} {
		if codes[code] == 0 {
			t.Errorf("no request was answered %s", code)
		}
	}
}
