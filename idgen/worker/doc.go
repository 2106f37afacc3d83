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
//	defer ids.Close() // returns the worker id
//
// Sources of worker ids are registered by name, as database/sql's drivers are:
// static(N), env(VAR) and ordinal() are built in, others need a blank
// import. mysql() uses a pool, which mysql-leaf passes to it. A new source implements
// the two methods of [Slots], and passes the tests of package workertest.
//
// The terms, with the default timing:
//
//	slot         one document of the registry, for one worker id
//	lease        the right to use a worker id; it is confirmed for 60 s at a time (Config.Lease)
//	bound        the end of the confirmed time: no id has a later time
//	high water   the bound in the document: the latest time that its owner may put into an id
//	renewal      a confirmed write that raises both; six times per lease
//	grace        the time for which an expired slot is left to its owner: twice the lease. Lost
//	             documents are put back only if it is at least 60 s
//	unknown      a document without a known history: it is new, or its registry was wiped
//	             or failed over after it was written, or it may have been put back after
//	             others had the slot
//	quarantine   the lease and 60 s, after which no owner that is missing in the registry
//	             can still issue ids
//	floor        the latest time that may have been used under a slot before it was taken
//	spare        a free document that was created in advance and never used
//	put back     written again by the owner, after the registry lost it
//	acknowledged a write is acknowledged if the registry confirmed it without an error
//
// The package does not make ids. It cannot protect ids if a registry is reset
// to an older copy under the same identity while owners are running: stop them for two
// minutes before restoring a copy. docs/design/leases.md describes the protocol and its
// simulation.
package worker
