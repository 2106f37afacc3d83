// Package worker leases worker ids: small numbers that no two processes use for
// the same time. A [Keeper] takes one from a registry, renews it, and takes
// another when it is lost; a snowflake's generator asks it what may be issued.
//
//	open, err := worker.Lookup("static(7)", nil)
//	if err != nil {
//		return err
//	}
//	ids, err := snowflake.New(snowflake.Leaf, open, worker.Config{State: "/var/lib/shop"})
//	if err != nil {
//		return err
//	}
//	defer ids.Close() // gives the worker id back
//
// Sources of worker ids are registered by name, as database/sql's drivers are:
// static(N), env(VAR) and ordinal() are built in, others come with a blank
// import; mysql() takes a pool, which mysql-leaf gives it. A new one implements
// [Slots], two methods, and passes the tests of package workertest.
//
// The terms, with the default lengths:
//
//	slot         one document of the registry, for one worker id
//	lease        the right to use a worker id; it is confirmed for 60 s at a time (Config.Lease)
//	bound        the end of what is confirmed: no id has a later time
//	high water   the bound as the document has it: the latest time that its owner may put into an id
//	renewal      a confirmed write that raises both; six times in the length of a lease
//	grace        how long an expired slot is left to its owner: twice the lease. Safety needs it
//	             only where lost documents are put back: at least 60 s
//	unknown      a document that does not tell what was before it: a new one, or one of a
//	             registry that was wiped or failed over after the document was written, or one
//	             that may have been written again when others had the slot
//	quarantine   the lease and 60 s, after which no owner that the registry does not know of
//	             can still issue ids
//	floor        the latest time that may have been used under a slot before it was taken
//	spare        a free document made in advance, which nobody ever used
//	put back     written again by the owner, after the registry lost it
//	told true    of a write: the registry said that it was done, and gave no error
//
// The package does not make ids, and it cannot help where a registry is set
// back to an older copy under the same identity while owners live: wait two
// minutes before bringing one back. ARCHITECTURE.md has the protocol and what
// was simulated.
package worker
