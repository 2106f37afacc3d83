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

var malformed = flag.Int("malformed", 10_000, "how many requests TestMalformedRequestsLeakNothing sends")

// faultyRequests are functions that make requests with one fault each.
var faultyRequests = []func(*rand.Rand) string{
	func(r *rand.Rand) string { return randomBytes(r, 1+r.IntN(200)) + "\r\n\r\n" },
	func(r *rand.Rand) string { return requestText(randomWord(r), "/api/segment/get/orders", "") },
	func(r *rand.Rand) string { return requestText("GET", "/"+randomBytes(r, r.IntN(300)), "") },
	func(r *rand.Rand) string {
		return requestText("GET", "/api/segment/get/"+url.PathEscape(randomBytes(r, r.IntN(200))), "") // may be a valid tag
	},
	func(r *rand.Rand) string { return requestText("GET", "/api/segment/get/"+randomWord(r), "") },
	func(r *rand.Rand) string { return requestText("GET", "/api/segment/get/%"+randomWord(r), "") },
	func(r *rand.Rand) string {
		return requestText("GET", "/api/segment/get/orders?n="+url.QueryEscape(randomBytes(r, 1+r.IntN(30))), "")
	},
	func(r *rand.Rand) string {
		return requestText("GET", "/api/segment/get/orders?"+strings.Repeat("n&", r.IntN(1000)), "")
	},
	func(r *rand.Rand) string {
		return requestText("GET", "/decodeSnowflakeId?snowflakeId="+url.QueryEscape(randomBytes(r, r.IntN(30))), "")
	},
	func(r *rand.Rand) string {
		return requestText("GET", "/"+strings.Repeat("../", r.IntN(1000))+randomWord(r), "")
	},
	func(r *rand.Rand) string { return requestText("GET", "/"+strings.Repeat("a", r.IntN(30_000)), "") },
	func(r *rand.Rand) string {
		return requestText("GET", "/db", strings.Repeat("X-"+randomWord(r)+": "+randomWord(r)+"\r\n", r.IntN(2000)))
	},
	func(r *rand.Rand) string { return requestText("GET", "/db", randomBytes(r, 50)+": x\r\n") },
	func(r *rand.Rand) string { return requestText("GET", "/db", "X: "+randomBytes(r, 50)+"\r\n") },
	func(r *rand.Rand) string { return "GET /db HTTP/1.1\r\n\r\n" }, // without a host
	func(r *rand.Rand) string {
		return fmt.Sprintf("GET /db HTTP/%d.%d\r\nHost: x\r\n\r\n", r.IntN(12), r.IntN(12))
	},
	func(r *rand.Rand) string {
		return requestText("GET", "/db", "Transfer-Encoding: "+randomWord(r)+"\r\n")
	},
	func(r *rand.Rand) string {
		return requestText("POST", "/db", "Transfer-Encoding: chunked\r\n") + randomWord(r) + "\r\n" + randomBytes(r, 100)
	},
	func(r *rand.Rand) string { return requestText("GET", "/db", "Content-Length: "+randomWord(r)+"\r\n") },
	func(r *rand.Rand) string { return requestText("GET", "/db", "Content-Length: -1\r\n") },
	func(r *rand.Rand) string {
		return requestText("GET", "/api/segment/get/orders", "Content-Length: 100\r\n") + randomBytes(r, 100)
	},
	func(r *rand.Rand) string { return requestText("GET", "/db", "Expect: "+randomWord(r)+"\r\n") },
	func(r *rand.Rand) string {
		return requestText("GET", "/healthz", "Authorization: "+randomWord(r)+"\r\n")
	},
	func(r *rand.Rand) string {
		return requestText("OPTIONS", "*", "") + requestText("CONNECT", randomWord(r)+":1", "") + requestText("TRACE", "/", "")
	},
	func(r *rand.Rand) string { return requestText("PRI", "*", "") + "SM\r\n\r\n" + randomBytes(r, 100) },
	func(r *rand.Rand) string { return "\x16\x03\x01" + randomBytes(r, 200) }, // TLS
	func(r *rand.Rand) string { // truncated
		text := requestText("GET", "/api/segment/get/orders", "")
		return text[:r.IntN(len(text)-4)]
	},
}

func requestText(method, target, header string) string {
	return method + " " + target + " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n" + header + "\r\n"
}

func randomBytes(r *rand.Rand, n int) string {
	text := make([]byte, n)
	for i := range text {
		text[i] = byte(r.Uint32())
	}
	return string(text)
}

func randomWord(r *rand.Rand) string {
	text := make([]byte, 1+r.IntN(12))
	for i := range text {
		text[i] = byte('a' + r.IntN(26))
	}
	return string(text)
}

// TestMalformedRequestsLeakNothing: no request makes the server fail or leak resources. It answers 503 to too many concurrent
// requests for unknown tags.
func TestMalformedRequestsLeakNothing(t *testing.T) {
	_, dsn := createDatabase(t, 1000, "orders")
	_, server, _ := runServer(t, Config{DSN: dsn})
	get(t, server+"/api/segment/get/orders").wantBody(t, "1000")
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
			t.Errorf("answer to %q = %q, want no 5xx but 503", text, answer)
		}
	}
	flood := func(n int) (heap uint64, goroutines int) {
		var wg sync.WaitGroup
		for i := range 64 {
			wg.Go(func() {
				r := rand.New(rand.NewPCG(uint64(n), uint64(i)))
				for k := i; k < n; k += 64 {
					send(faultyRequests[k/64%len(faultyRequests)](r))
				}
			})
		}
		wg.Wait()
		waitFor(t, "an end of its goroutines", func() bool { goroutines = runtime.NumGoroutine(); return goroutines < 100 })
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
		t.Errorf("heap after the requests = %d KiB, want at most 1 MiB above %d KiB", after>>10, before>>10)
	}
	get(t, server+"/readyz").wantBody(t, "ready\n")
	for _, code := range []string{"200", "400", "404", "405", "413", "431"} {
		if codes[code] == 0 {
			t.Errorf("answers with %s = 0, want at least one", code)
		}
	}
}
