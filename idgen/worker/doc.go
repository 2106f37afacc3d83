// Package worker leases worker ids: small numbers that no two processes use for
// the same time. A [Keeper] takes a worker id from a registry, renews it, and takes
// another one if it is lost. A snowflake generator reads from the Keeper the times that its
// ids may have.
//
//	open, err := worker.Lookup("static(7)", nil)
//	if err != nil {
//		return err
//	}
//	ids, err := snowflake.New(snowflake.Leaf, open, worker.Config{State: "/var/lib/shop"})
//	if err != nil {
//		return err
//	}
//	defer ids.Close() // releases the worker id
//
// Sources of worker ids are registered by name, like database/sql's drivers.
// static(N), env(VAR) and ordinal() are built in; others need a blank
// import. mysql() uses a pool, which mysql-leaf passes to it. A new source implements
// the two methods of [Slots], and passes the tests of package workertest.
//
// The comments of this package use these terms. Times are those of the default timing.
//
//	slot         the place of one document in the registry; each worker id has one slot
//	put          a write of a document, which succeeds only if the document has the
//	             version that the writer expects (compare-and-set)
//	acknowledged a put is acknowledged if the registry confirmed it without an error
//	take         an acknowledged put by which a process becomes the owner of a slot
//	owner        the process that took a slot last; it is the holder of the worker id
//	             until it releases the slot or its lease ends
//	lease        the right to use a worker id; a put confirms it for 60 s (Config.Lease)
//	bound        the end of the lease, as the owner has it in memory: no id has a later time
//	high water   the latest time that the owner may put into an id, as the document has it
//	renewal      an acknowledged put that raises the bound and the high water, every 10 s
//	skew         60 s, the largest difference of two machines' clocks that the package allows
//	grace        twice the lease, the time after the high water during which other processes
//	             leave a slot to its owner; an owner puts a lost document back only if
//	             the grace is not shorter than the skew
//	put back     an owner puts a document back if it writes it again after the registry lost it
//	history      the earlier owners of a slot. It is unknown if the document is new, if the
//	             registry was wiped or failed over after the document was written, or
//	             if the document may have been put back after other processes had the slot
//	quarantine   the wait of a new owner for the lease and the skew. After it, no earlier owner
//	             can issue ids, even if the registry has lost the earlier owner's document
//	floor        the latest time that earlier owners of a slot may have put into ids
//	spare        a free document that was created in advance and has never had an owner
//
// A comment "// mutation: NAME" names a change that TestMutations applies to its line; the tests
// have to fail with it.
//
// The package does not make ids. It cannot protect ids if a registry is replaced
// by an older copy with the same identity while processes hold worker ids: stop these processes two
// minutes before you restore a copy. docs/design/leases.md describes the protocol and its
// simulation.
package worker
