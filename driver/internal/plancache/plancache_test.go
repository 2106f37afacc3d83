package plancache

import (
	"fmt"
	"strings"
	"sync"
	"testing"
)

func TestKeepsWhatIsUsed(t *testing.T) {
	c := New[int](8, 1<<20)
	c.Put("hot", -1)
	for i := range 100 {
		if v, ok := c.Get("hot"); !ok || v != -1 {
			t.Fatalf("after %d others the text in use is gone", i)
		}
		c.Put(fmt.Sprint(i), i)
	}
	if v, ok := c.Get("99"); !ok || v != 99 {
		t.Error("the newest text is gone")
	}
	if _, ok := c.Get("1"); ok {
		t.Error("an old text is still there")
	}
}

func TestBounds(t *testing.T) {
	c := New[int](1000, 64*(overhead+100))
	c.Put(strings.Repeat("x", 101), 1)
	if c.n != 0 {
		t.Error("a text too long was kept")
	}
	for i := range 5000 {
		c.Put(fmt.Sprintf("%0*d", i%100+1, i), i)
		if c.n > 1000 || c.bytes > c.limit {
			t.Fatalf("%d entries, %d bytes", c.n, c.bytes)
		}
	}
	held := 0
	for i := range c.buckets {
		for e := c.buckets[i].Load(); e != nil; e = e.next.Load() {
			held++
		}
	}
	if held != c.n {
		t.Errorf("%d entries can be found, %d are counted", held, c.n)
	}
}

func TestPutReplaces(t *testing.T) {
	c := New[int](4, 1<<20)
	for i := range 10 {
		c.Put("a", i)
		c.Put("b", i)
	}
	if v, _ := c.Get("a"); v != 9 || c.n != 2 {
		t.Errorf("value %d, %d entries", v, c.n)
	}
	c.Clear()
	if _, ok := c.Get("a"); ok || c.n != 0 || c.bytes != 0 {
		t.Error("Clear left something")
	}
	c.Put("a", 1)
	if v, ok := c.Get("a"); !ok || v != 1 {
		t.Error("nothing is kept after Clear")
	}
}

// A reader must never see the value of another text, whatever is evicted
// under it.
func TestConcurrent(t *testing.T) {
	c := New[string](16, 1<<20)
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for i := range 20000 {
				text := fmt.Sprint("text", (i*7+g)%40)
				if v, ok := c.Get(text); ok && v != text {
					t.Errorf("%s has the value of %s", text, v)
				} else if !ok {
					c.Put(text, text)
				}
				if i%5000 == 0 {
					c.Clear()
				}
			}
		})
	}
	wg.Wait()
}

func TestHitAllocatesNothing(t *testing.T) {
	c := New[int](16, 1<<20)
	text := strings.Repeat("x", 120)
	c.Put(text, 1)
	if n := testing.AllocsPerRun(100, func() { c.Get(text) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkHit(b *testing.B) {
	c := New[int](4096, 16<<20)
	texts := make([]string, 100)
	for i := range texts {
		texts[i] = fmt.Sprintf("INSERT INTO orders_%03d (customer, total, created, state) VALUES (?, ?, ?, ?)", i)
		c.Put(texts[i], i)
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
