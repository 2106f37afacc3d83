package nacos

import (
	"log/slog"
	"strconv"
	"testing"
	"time"

	"github.com/leafsql/leafsql/idgen/worker"
	"github.com/leafsql/leafsql/nacos/internal/fakenacos"
)

const fakeService = "public/DEFAULT_GROUP@@leafsql"

func TestPresence(t *testing.T) {
	for name, faults := range map[string]fakenacos.Faults{
		"over gRPC, the old API gone": {NoHTTP: 410},
		"over the old API":            {NoPersistent: true},
		"seen late":                   {ListLag: 500 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			s := fakenacos.Start(t, fakenacos.Modern)
			former := mustOpenFake(t, fakeConfig(s)).configs.(*cluster)
			crashed := instance{IP: "10.0.0.2", Port: 80, Metadata: map[string]string{metaWorker: "0"}}
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
			// A registration that is refused keeps nobody from a worker id.
			l, err := worker.Acquire(within30s(t), src, worker.Config{NewRegistry: true, Workers: 1})
			if err != nil {
				t.Fatal(err)
			}
			s.Fault(func(f *fakenacos.Faults) { f.RefuseNaming = false })
			eventually(t, "our instance alone", func() bool {
				list := s.Instances(fakeService)
				return len(list) == 1 && list[0].Port == 80 && list[0].IP == "10.0.0.1" &&
					list[0].Metadata[metaWorker] == strconv.Itoa(l.Worker())
			})
			eventually(t, "the last worker id of an equal address", func() bool {
				id, ok := src.Last(t.Context())
				return ok && id == l.Worker()
			})
			s.Revert()
			if id, ok := src.Last(t.Context()); ok {
				t.Errorf("a last worker id, %d, from an instance without metadata", id)
			}
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
			if list := s.Instances(fakeService); len(list) > 0 {
				t.Errorf("after Close there is %v", list)
			}
		})
	}
}

// TestLoserLeavesTheWinnersEntry has two processes at one address, of which the
// second takes the worker id that the first lost while it was paused.
func TestLoserLeavesTheWinnersEntry(t *testing.T) {
	s := fakenacos.Start(t, fakenacos.Modern)
	names := mustOpenFake(t, fakeConfig(s)).configs.(*cluster)
	process := func(nonce string) (show, remove func()) {
		p := &presence{names: names, self: Instance{IP: "10.0.0.1"}, log: slog.Default()}
		h := worker.Holding{Worker: 5, Doc: worker.Doc{Nonce: nonce}}
		return func() { p.show(within30s(t), p.instance(h)) }, func() { p.held(within30s(t), h) }
	}
	show, removeLoser := process("loser")
	show()
	show, removeWinner := process("winner")
	show()
	removeLoser()
	if list := s.Instances(fakeService); len(list) != 1 || list[0].Metadata[metaNonce] != "winner" {
		t.Errorf("after the loser left there is %v", list)
	}
	removeWinner()
	if list := s.Instances(fakeService); len(list) != 0 {
		t.Errorf("after both left there is %v", list)
	}
}
