package chaos

import (
	"context"
	"fmt"
	"io"
	"net"
	"strconv"
	"testing"
	"time"

	"github.com/leafsql/leafsql/idgen/worker"
	"github.com/leafsql/leafsql/testutil/nacostest"
	"github.com/leafsql/leafsql/testutil/netfault"
)

// A registry is a Nacos server behind two sets of proxies, one for each half of
// the writers, so that the halves can be cut off one by one.
type registry struct {
	*nacostest.Server
	halves [2]half
}

// A half is the way to the server of one half of the writers.
type half struct{ http, grpc *netfault.Proxy }

func startRegistry(t *testing.T, v nacostest.Version) *registry {
	r := &registry{Server: nacostest.Start(t, v, nacostest.Options{})}
	for i := range r.halves {
		r.halves[i] = half{netfault.Start(t, r.Addr()), netfault.Start(t, r.GRPCAddr())}
	}
	if err := r.use(t.Context()); err != nil {
		t.Fatal(err)
	}
	return r
}

// workers is how many worker ids there are: few, so that they change hands.
const workers = 32

// use makes the registry one that has been in use: whoever takes a worker id
// of a new one has to wait for over a minute.
func (r *registry) use(ctx context.Context) error {
	src, err := worker.OpenSource(ctx, r.spec(0), nil)
	if err != nil {
		return err
	}
	defer src.Slots.(io.Closer).Close()
	for slot := range workers {
		d := worker.Doc{Nonce: "before" + strconv.Itoa(slot), HW: time.Now().Add(-time.Minute).UnixMilli(), Free: true}
		if _, res, err := src.Slots.Put(ctx, slot, d, ""); res != worker.OK {
			return fmt.Errorf("slot %d: %v, %w", slot, res, err)
		}
	}
	return nil
}

// spec is what a writer puts into leafWorker.
func (r *registry) spec(writer int) string {
	h := r.halves[writer%2]
	_, port, err := net.SplitHostPort(h.grpc.Addr())
	if err != nil {
		panic(err)
	}
	return fmt.Sprintf("%s(%s:%s)", source, h.http.Addr(), port)
}

// each does something to every proxy of the half.
func (h half) each(do func(*netfault.Proxy)) {
	do(h.http)
	do(h.grpc)
}
