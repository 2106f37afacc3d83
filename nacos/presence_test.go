package nacos

import (
	"context"
	"log/slog"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/leafsql/leafsql/idgen/worker"
	"github.com/leafsql/leafsql/nacos/internal/api"
	"github.com/leafsql/leafsql/nacos/internal/fakenacos"
)

const fakeService = "public/DEFAULT_GROUP@@leafsql"

func TestPresenceListsHolders(t *testing.T) {
	t.Parallel()
	for name, faults := range map[string]fakenacos.Faults{
		"at once":   {},
		"seen late": {ListLag: 500 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			s := fakenacos.Start(t, fakenacos.Modern)
			former := mustOpenFake(t, fakeConfig(s)).configs.(*cluster)
			crashed := api.Instance{IP: "10.0.0.2", Port: 80, Metadata: map[string]string{metaWorker: "0"}}
			if err := former.register(t.Context(), crashed); err != nil {
				t.Fatal(err)
			}
			time.Sleep(faults.ListLag)
			s.Fault(func(f *fakenacos.Faults) { *f = faults; f.RefuseNaming = true })
			cfg := fakeConfig(s)
			cfg.Instance = Instance{IP: "10.0.0.1", Port: 80}
			src, err := Open(within30s(t), cfg)
			if err != nil {
				t.Fatal(err)
			}
			// A refused registration does not prevent a worker id.
			k, err := keep(t, func(context.Context) (worker.Source, error) { return src, nil }, worker.Config{NewRegistry: true, Workers: 1})
			if err != nil {
				t.Fatal(err)
			}
			id := k.Status().Worker
			s.Fault(func(f *fakenacos.Faults) { f.RefuseNaming = false })
			eventually(t, "our instance alone", func() bool {
				list := s.Instances(fakeService)
				return len(list) == 1 && list[0].Port == 80 && list[0].IP == "10.0.0.1" && list[0].Metadata[metaWorker] == strconv.Itoa(id)
			})
			eventually(t, "the last worker id of an equal address", func() bool {
				last, ok := src.Last(t.Context())
				return ok && last == id
			})
			s.Revert()
			if last, ok := src.Last(t.Context()); ok {
				t.Errorf("a last worker id, %d, from an instance without metadata, want ok = false", last)
			}
			if err := k.Close(); err != nil {
				t.Fatal(err)
			}
			if list := s.Instances(fakeService); len(list) > 0 {
				t.Errorf("after Close there is %v, want no list", list)
			}
		})
	}
}

// at returns a presence of the process at an address.
func at(t *testing.T, s *fakenacos.Server, self Instance) *presence {
	r := mustOpenFake(t, fakeConfig(s))
	return &presence{names: r.configs.(*cluster), slots: r, self: self, log: slog.Default()}
}

// TestDefaultPortIsSafe: no instance has a port that may belong to another program, or
// one below 1024.
func TestDefaultPortIsSafe(t *testing.T) {
	p := &presence{self: Instance{IP: "10.0.0.1"}}
	for id := range 1024 {
		if port := p.instance(id, worker.Doc{}).Port; port != 10000+id {
			t.Fatalf("worker id %d at port %d, want %v", id, port, 10000+id)
		}
	}
}

// TestLoserLeavesTheWinnersEntry: of two processes at one address, the second
// takes the worker id that the first lost while it was paused.
func TestLoserLeavesTheWinnersEntry(t *testing.T) {
	t.Parallel()
	s := fakenacos.Start(t, fakenacos.Modern)
	process := func(nonce string) (show, remove func()) {
		p := at(t, s, Instance{IP: "10.0.0.1"})
		d := worker.Doc{Nonce: nonce}
		return func() { p.show(within30s(t), p.instance(5, d)) }, func() { p.onChange(within30s(t), 5, d, false) }
	}
	show, removeLoser := process("loser")
	show()
	show, removeWinner := process("winner")
	show()
	removeLoser()
	if list := s.Instances(fakeService); len(list) != 1 || list[0].Metadata[metaNonce] != "winner" {
		t.Errorf("after the loser left there is %v, want len(list) = 1 and list[0].Metadata[metaNonce] = \"winner\"", list)
	}
	removeWinner()
	if list := s.Instances(fakeService); len(list) != 0 {
		t.Errorf("after both left there is %v, want no list", list)
	}
}

// TestTidyRemovesOnlyDeadEntries: a holder removes only the entries of dead processes that follow its
// own in the ring of worker ids, up to the next entry of a live process.
func TestTidyRemovesOnlyDeadEntries(t *testing.T) {
	t.Parallel()
	s := fakenacos.Start(t, fakenacos.Modern)
	p := at(t, s, Instance{IP: "10.0.0.1", Port: 80})
	entry := func(id int, nonce string, d worker.Doc) {
		in := api.Instance{IP: "10.0.0.2", Port: 1000 + id, Metadata: map[string]string{metaWorker: strconv.Itoa(id), metaNonce: nonce}}
		if err := p.names.register(t.Context(), in); err != nil {
			t.Fatal(err)
		}
		if _, ok, err := p.slots.Put(t.Context(), id, d, ""); !ok {
			t.Fatal(err)
		}
	}
	now := time.Now()
	held := func(nonce string, upTo time.Time) worker.Doc { return worker.Doc{Nonce: nonce, HighWater: upTo} }
	entry(1, "a", held("a", now.Add(-time.Hour)))                                    // before our own in the ring: for another holder
	entry(6, "b", held("b", now.Add(-time.Hour)))                                    // over for an hour
	entry(7, "c", held("other", now.Add(time.Minute)))                               // taken by another process
	entry(8, "d", worker.Doc{Nonce: "d", HighWater: now.Add(time.Hour), Free: true}) // released
	entry(9, "e", held("e", now.Add(time.Second)))                                   // alive
	entry(10, "f", held("f", now.Add(-time.Hour)))                                   // for another holder
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var wg sync.WaitGroup
	wg.Go(func() { p.onChange(ctx, 5, held("own", now.Add(time.Minute)), true) })
	var left map[string]bool
	look := func() {
		left = map[string]bool{}
		for _, in := range s.Instances(fakeService) {
			left[in.Metadata[metaWorker]] = true
		}
	}
	eventually(t, "the last that is removed", func() bool { look(); return !left["8"] })
	time.Sleep(500 * time.Millisecond) // no more removals
	cancel()
	wg.Wait()
	look()
	for id, want := range map[string]bool{"1": true, "5": true, "6": false, "7": false, "8": false, "9": true, "10": true} {
		if left[id] != want {
			t.Errorf("worker id %s is listed: %v, want %v", id, left[id], want)
		}
	}
}
