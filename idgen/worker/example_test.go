package worker_test

import (
	"context"
	"fmt"
	"log"
	"log/slog"

	"github.com/leafsql/leafsql/idgen/worker"
	"github.com/leafsql/leafsql/idgen/worker/workertest"
)

// discardLogger logs nothing.
var discardLogger = slog.New(slog.DiscardHandler)

// A fixed worker id, as a DSN writes it.
func ExampleLookup() {
	open, err := worker.Lookup("static(7)", nil)
	if err != nil {
		log.Fatal(err)
	}
	keeper, err := worker.Keep(open, worker.Config{Logger: discardLogger})
	if err != nil {
		log.Fatal(err)
	}
	defer keeper.Close()
	status, err := keeper.Wait(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(status.Worker)
	// Output: 7
}

// A worker id that is leased from a registry in memory.
func ExampleKeep() {
	registry := new(workertest.Memory)
	open := func(context.Context) (worker.Source, error) {
		return worker.Source{Slots: registry, Name: "memory"}, nil
	}
	keeper, err := worker.Keep(open, worker.Config{Workers: 4, NewRegistry: true, Logger: discardLogger})
	if err != nil {
		log.Fatal(err)
	}
	defer keeper.Close() // returns the worker id
	status, err := keeper.Wait(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(status.Phase, status.Worker < 4)
	// Output: holding true
}

// A roll-out calls Prepare once, so that the first processes need not wait.
func ExamplePrepare() {
	registry := new(workertest.Memory)
	open := func(context.Context) (worker.Source, error) {
		return worker.Source{Slots: registry, Name: "memory"}, nil
	}
	ctx := context.Background()
	if err := worker.Prepare(ctx, open, worker.Config{Workers: 4, NewRegistry: true, Logger: discardLogger}); err != nil {
		log.Fatal(err)
	}
	keeper, err := worker.Keep(open, worker.Config{Workers: 4, Logger: discardLogger})
	if err != nil {
		log.Fatal(err)
	}
	defer keeper.Close()
	status, err := keeper.Wait(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(status.Phase)
	// Output: holding
}

// A new source, which DSNs name as leafWorker=rack(12).
func ExampleRegister() {
	registry := new(workertest.Memory)
	worker.Register("rack", func(address string, opts worker.Options) (func(context.Context) (worker.Source, error), error) {
		return func(context.Context) (worker.Source, error) {
			return worker.Source{Slots: registry, Name: "rack " + address}, nil
		}, opts.Only()
	})
	open, err := worker.Lookup("rack(12)", nil)
	if err != nil {
		log.Fatal(err)
	}
	source, err := open(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(source.Name)
	// Output: rack 12
}

// A registry stores this text for a worker id.
func ExampleDoc_Decode() {
	var doc worker.Doc
	err := doc.Decode(`{"nonce":"5f1c","hw":1761523200000,"owner":"db0:4711"}`)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(doc.Owner, doc.HighWater.UTC().Year(), doc.Free)
	// Output: db0:4711 2025 false
}
