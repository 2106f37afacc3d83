package redis

import (
	"context"
	"errors"
	"log"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/leafsql/leafsql/idgen/worker/redis/redistest"
	"github.com/leafsql/leafsql/internal/leasetest"
	"github.com/leafsql/leafsql/testutil/freeport"
)

// lines is a log in memory.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// TestGoRedisLogsNothing: go-redis logs nothing for this package's clients if their servers fail. It logs the lines of other clients with their
// place in the code.
func TestGoRedisLogsNothing(t *testing.T) {
	var out lines
	redis.SetLogger(quietLogger{log.New(&out, "redis: ", log.Lshortfile)})
	t.Cleanup(func() { redis.SetLogger(quietLogger{log.Default()}) })
	nowhere := func() string {
		port, err := freeport.Find()
		if err != nil {
			t.Fatal(err)
		}
		return "127.0.0.1:" + strconv.Itoa(port)
	}
	ask := func(cfg Config) error {
		src, err := Open(cfg)
		if err != nil {
			t.Fatal(err)
		}
		defer src.Close()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		_, err = src.Identity(ctx)
		return err
	}
	away, other := nowhere(), nowhere()
	for name, cfg := range map[string]Config{"server": {Servers: []string{away}}, "cluster": {Servers: []string{away}, Cluster: true}, "Sentinels": {Servers: []string{away}, Master: "m"}} {
		if err := ask(cfg); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("%s: ask(cfg) = %v, want syscall.ECONNREFUSED", name, err)
		}
	}
	r := redistest.StartReplicated(t, redistest.Config{})
	if err := r.Sentinels[0].Kill9(); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if err := ask(of(r.Options())); err != nil {
			t.Error(err)
		}
	}
	client := redis.NewClient(&redis.Options{Addr: other, MaxRetries: -1, DialerRetries: 1})
	defer client.Close()
	client.Ping(t.Context())
	leasetest.Eventually(t, "a line on another's client", func() bool { return strings.Contains(out.String(), other) })
	for line := range strings.Lines(out.String()) {
		if strings.Contains(line, away) || strings.Contains(line, "entinel") || strings.Contains(line, other) && !regexp.MustCompile(`^redis: pool\.go:\d+: `).MatchString(line) {
			t.Errorf("go-redis logged %q, want no line about this package's clients", line)
		}
	}
}
