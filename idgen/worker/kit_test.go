package worker_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/leafsql/leafsql/idgen/worker"
	"github.com/leafsql/leafsql/idgen/worker/workertest"
)

func TestKitOnTheLocalFile(t *testing.T) {
	workertest.Registry(func(t testing.TB) workertest.Fixture {
		dir := t.TempDir()
		return workertest.Fixture{
			Exclusive: true,
			Open: func(context.Context) (worker.Source, error) {
				return worker.FileSource(dir, 0)
			},
			Corrupt: func(slot int) error {
				return os.WriteFile(filepath.Join(dir, fmt.Sprintf("worker-%d.json", slot)), []byte(`{"nonce":"`), 0o644)
			},
		}
	}).RunInBubble(t)
}
