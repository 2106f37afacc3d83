// Package segment issues ids from ranges that it fetches from a table. Each generator serves one tag. It works
// like the segment mode of Leaf, and can share Leaf's table leaf_alloc with running Java servers.
//
//	store := segment.NewAllocStore(sqlx.NewDb(pool, "mysql"), "leaf_alloc")
//	orders := segment.New(store, "orders", nil)
//	defer orders.Close()
//	id, err := orders.Next(ctx, 1)
//
// [NewSequenceStore] does the same on a plain table of sequences, t_sequence.
//
// A call costs one atomic addition while ids are in memory. The next range is fetched before they run out: when
// half of them are used, or earlier if the rate of use and the duration of a fetch require it. The first range
// of a generator holds at most 16 ids (or as many as are wanted, or the row's step if that is less), so that a
// program that runs for a second wastes few ids. The second range holds the row's step; it is also fetched if
// ids are still wanted after 5 seconds. Each later range holds twice as many ids as the previous one if that
// lasted less than 15 minutes (up to 1,000,000, or the row's step if that is more), and half as many if it
// lasted more than 30 minutes (down to the row's step). If package driver gives ids to a key column smaller
// than BIGINT, ranges are smaller.
//
// Rows that bring their own key are announced with [Generator.Skip]: no id up to that key is issued afterwards,
// by this generator or from any range fetched later. Package driver also searches the table for rows that were
// not announced, and discards the ids in memory that these rows have.
//
// While the store is unavailable, ids in memory are still issued, and attempts continue in the background, at
// most a second apart. A call that finds no ids waits for one attempt, either the current one or the next one.
// If the attempt fails, the call fails with its cause. The call waits at most for the pause before the next
// attempt and for that attempt, or until its context ends. A store that has not answered within 5 seconds may
// only be slow: each further attempt has twice the time, up to a minute. A call without a deadline waits at
// most a minute. An error that is the table's own answer, such as *UnknownTagError, is returned immediately,
// and each further call queries the table again.
//
// A generator remembers the highest id it fetched and refuses ranges below. It detects a row that is lowered,
// recreated or restored while the generator exists (*RolledBackError). A process that starts afterwards cannot
// detect this.
//
// The ids of one generator ascend. Ids that remain in memory when a process ends are lost, and so is the rest
// of a range that is too short for the consecutive ids of one call. The package stores no ids on disk and gives
// none back, since every way to lower a row can issue a range twice.
//
// The designs are in docs/design/segments.md and docs/design/failover.md.
package segment
