package api

import (
	"context"
	"crypto/md5"
	"encoding/hex"
	"fmt"
	"strconv"
	"time"

	"github.com/leafsql/leafsql/idgen/worker"
)

// DocumentID returns the name of a slot's config document.
func DocumentID(service string, slot int) string {
	if slot == worker.RegistrySlot {
		return service + ".registry"
	}
	return service + ".worker." + strconv.Itoa(slot)
}

// VersionOf returns the md5 of a document's text.
func VersionOf(text string) worker.Version {
	h := md5.Sum([]byte(text))
	return worker.Version(hex.EncodeToString(h[:]))
}

// ReadSlot reads a slot for worker.Slots' Get. query returns a document's text. The error
// is query's, or Decode's for a text that is not a document.
func ReadSlot(id string, query func(id string) (text string, found bool, err error)) (worker.Doc, worker.Version, error) {
	text, found, err := query(id)
	if err != nil || !found {
		return worker.Doc{}, "", err
	}
	var d worker.Doc
	if err := d.Decode(text); err != nil {
		return worker.Doc{}, "", fmt.Errorf("config %s: %w", id, err)
	}
	return d, VersionOf(text), nil
}

// Sleep waits for d and returns true, or false if ctx ends earlier.
func Sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
