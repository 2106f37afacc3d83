package server

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// BenchmarkHTTP lets 64 clients request ids and, in turns, a constant from a bare http.Server: ratio is the
// rate of ids divided by the rate of constants. A round is 200 requests of each client for each of them.
func BenchmarkHTTP(b *testing.B) {
	_, dsn := createDatabase(b, 100_000, "orders")
	_, server, _ := runServer(b, Config{DSN: dsn + "?leafWorker=static(7)&leafNewRegistry=true"})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	constant := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header()["Content-Type"] = textPlain
		io.WriteString(w, "1234567890")
	})}
	go constant.Serve(listener)
	b.Cleanup(func() { constant.Close() })
	for name, path := range map[string]string{"segment": "/api/segment/get/orders", "snowflake": "/api/snowflake/get/orders"} {
		b.Run(name, func(b *testing.B) {
			const clients, requests = 64, 200
			var conns [2][]net.Conn
			for range clients {
				for i, address := range []string{listener.Addr().String(), strings.TrimPrefix(server, "http://")} {
					c, err := net.Dial("tcp", address)
					if err != nil {
						b.Fatal(err)
					}
					defer c.Close()
					conns[i] = append(conns[i], c)
				}
			}
			round := func(conns []net.Conn) (took time.Duration, p99 time.Duration) {
				began := time.Now()
				var each [clients][]time.Duration
				var wg sync.WaitGroup
				for i, c := range conns {
					wg.Go(func() {
						for range requests {
							asked := time.Now()
							if err := exchange(c, path); err != nil {
								b.Error(err)
								return
							}
							each[i] = append(each[i], time.Since(asked))
						}
					})
				}
				wg.Wait()
				took = time.Since(began)
				all := slices.Concat(each[:]...)
				slices.Sort(all)
				return took, all[len(all)*99/100]
			}
			var took [2]time.Duration
			var p99 [2][]time.Duration
			round(conns[1])
			for b.Loop() {
				for i := range conns {
					t, p := round(conns[i])
					took[i] += t
					p99[i] = append(p99[i], p)
				}
			}
			all := float64(b.N * clients * requests)
			b.ReportMetric(all/took[1].Seconds(), "req/s")
			b.ReportMetric(all/took[0].Seconds(), "constant/s")
			b.ReportMetric(took[0].Seconds()/took[1].Seconds(), "ratio")
			for i, name := range []string{"constant-p99-ms", "p99-ms"} {
				slices.Sort(p99[i])
				b.ReportMetric(float64(p99[i][len(p99[i])/2].Microseconds())/1000, name)
			}
			b.ReportMetric(0, "ns/op")
		})
	}
}

// exchange requests a path and reads the answer, which fits into one packet.
func exchange(c net.Conn, path string) error {
	if _, err := io.WriteString(c, "GET "+path+" HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"); err != nil {
		return err
	}
	var answer [1024]byte
	n, err := c.Read(answer[:])
	if err == nil && !bytes.HasPrefix(answer[:n], []byte("HTTP/1.1 200 ")) {
		err = io.ErrUnexpectedEOF
	}
	return err
}
