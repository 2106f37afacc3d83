package plancache

import (
	"fmt"
	"strings"
	"sync"
	"testing"
)

func TestUsedEntriesAreKept(t *testing.T) {
	c := New[string, int](8, 1<<20)
	c.Put("hot", -1, 0)
	for i := range 100 {
		if v, ok := c.Get("hot"); !ok || v != -1 {
			t.Fatalf("Get(hot) = %d, %v after %d other texts; want -1, true", v, ok, i)
		}
		c.Put(fmt.Sprint(i), i, 0)
	}
	if v, ok := c.Get("99"); !ok || v != 99 {
		t.Errorf("Get(99) = %d, %v; want 99, true", v, ok)
	}
	if _, ok := c.Get("1"); ok {
		t.Error("Get(1) found an old text, want it evicted")
	}
}

func TestCacheIsBounded(t *testing.T) {
	for size, want := range map[int]bool{100: true, 101: false} {
		c := New[string, int](1000, 32*(overhead+100))
		c.Put(fmt.Sprint("size ", size), 1, size)
		if _, ok := c.Get(fmt.Sprint("size ", size)); ok != want || c.Fits(size) != want {
			t.Errorf("an entry of %d bytes is cached = %v and Fits() = %v, want %v", size, ok, c.Fits(size), want)
		}
	}
	c := New[string, int](1000, 32*(overhead+100))
	for i := range 5000 {
		c.Put(fmt.Sprint(i), i, i%100)
		if bytes := size(c.young) + size(c.old); len(c.young)+len(c.old) > 1000 || bytes > 2*c.limit || c.bytes != size(c.young) {
			t.Fatalf("%d and %d entries of %d bytes, want at most 1000 entries and %d bytes", len(c.young), len(c.old), bytes, 2*c.limit)
		}
	}
}

func size(generation map[string]entry[int]) (bytes int) {
	for _, e := range generation {
		bytes += overhead + e.value%100
	}
	return bytes
}

func TestPutReplaces(t *testing.T) {
	c := New[string, int](4, 1<<20)
	for i := range 10 {
		c.Put("a", i, 0)
		c.Put("b", i, 0)
	}
	if v, _ := c.Get("a"); v != 9 {
		t.Errorf("Get(a) = %d, want 9", v)
	}
}

// TestConcurrentReadersGetValueOfTheirText: a reader never gets the value of another text while entries are
// evicted.
func TestConcurrentReadersGetValueOfTheirText(t *testing.T) {
	c := New[string, string](16, 1<<20)
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for i := range 20000 {
				text := fmt.Sprint("text", (i*7+g)%40)
				if v, ok := c.Get(text); ok && v != text {
					t.Errorf("Get(%s) = %s, want its own value", text, v)
				} else if !ok {
					c.Put(text, text, 0)
				}
			}
		})
	}
	wg.Wait()
}

func TestHitAllocatesNothing(t *testing.T) {
	c := New[string, int](16, 1<<20)
	text := strings.Repeat("x", 120)
	c.Put(text, 1, 0)
	if n := testing.AllocsPerRun(100, func() { c.Get(text) }); n != 0 {
		t.Errorf("Get: %v allocations, want 0", n)
	}
}

func BenchmarkHit(b *testing.B) {
	c := New[string, int](4096, 16<<20)
	texts := make([]string, 100)
	for i := range texts {
		texts[i] = fmt.Sprintf("INSERT INTO orders_%03d (customer, total, created, state) VALUES (?, ?, ?, ?)", i)
		c.Put(texts[i], i, 0)
	}
	b.Run("serial", func(b *testing.B) {
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			c.Get(texts[i%len(texts)])
		}
	})
	b.Run("parallel", func(b *testing.B) {
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			for i := 0; pb.Next(); i++ {
				c.Get(texts[i%len(texts)])
			}
		})
	})
}
