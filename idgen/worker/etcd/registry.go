package etcd

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/leafsql/leafsql/idgen/worker"
)

// registry implements worker.Slots. A version is the key's revision and its value, since
// revisions start again when a cluster is wiped.
type registry struct {
	client *clientv3.Client
	prefix string
}

func (r *registry) key(slot int) string {
	if slot == worker.RegistrySlot {
		return r.prefix + "/registry"
	}
	return r.prefix + "/worker/" + strconv.Itoa(slot)
}

func version(revision int64, text string) worker.Version {
	return worker.Version(strconv.FormatInt(revision, 10) + " " + text)
}

// Get implements worker.Slots.
func (r *registry) Get(ctx context.Context, slot int) (worker.Doc, worker.Version, error) {
	key := r.key(slot)
	resp, err := r.read(ctx, key)
	if err != nil || len(resp.Kvs) == 0 {
		return worker.Doc{}, "", err
	}
	text := string(resp.Kvs[0].Value)
	var d worker.Doc
	if err := d.Decode(text); err != nil {
		return worker.Doc{}, "", fmt.Errorf("key %s: %w", key, err)
	}
	return d, version(resp.Kvs[0].ModRevision, text), nil
}

// read makes a linearizable read of a key. If a server does not answer, it reads from another
// server.
func (r *registry) read(ctx context.Context, key string) (resp *clientv3.GetResponse, err error) {
	for range len(r.client.Endpoints()) + 1 {
		attempt, cancel := context.WithTimeout(ctx, callTimeout)
		resp, err = r.client.Get(attempt, key)
		cancel()
		if err == nil || ctx.Err() != nil || isDenied(err) {
			break
		}
	}
	return resp, err
}

// Put implements worker.Slots.
func (r *registry) Put(ctx context.Context, slot int, d worker.Doc, expected worker.Version) (worker.Version, bool, error) {
	key, text := r.key(slot), d.Encode()
	is := []clientv3.Cmp{clientv3.Compare(clientv3.CreateRevision(key), "=", 0)}
	if expected != "" {
		number, was, _ := strings.Cut(string(expected), " ")
		revision, err := strconv.ParseInt(number, 10, 64)
		if err != nil {
			return "", false, &worker.NotWrittenError{Err: err}
		}
		is = []clientv3.Cmp{
			clientv3.Compare(clientv3.ModRevision(key), "=", revision),
			clientv3.Compare(clientv3.Value(key), "=", was),
		}
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	resp, err := r.client.Txn(ctx).If(is...).Then(clientv3.OpPut(key, text)).Commit()
	if errors.Is(err, rpctypes.ErrInvalidAuthToken) || errors.Is(err, rpctypes.ErrAuthOldRevision) {
		// The token was refused; the client has a new token by now.
		resp, err = r.client.Txn(ctx).If(is...).Then(clientv3.OpPut(key, text)).Commit()
	}
	switch {
	case isDenied(err):
		return "", false, &worker.NotWrittenError{Err: err}
	case err != nil:
		return "", false, err
	case !resp.Succeeded:
		return "", false, nil
	}
	return version(resp.Header.Revision, text), true, nil
}

// isDenied reports whether err means that the user lacks a right. Other servers would return the same error.
func isDenied(err error) bool {
	return errors.Is(err, rpctypes.ErrPermissionDenied) || errors.Is(err, rpctypes.ErrUserEmpty)
}
