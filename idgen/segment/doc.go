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
// The comments of this package use these terms:
//
//   - A tag is the name of a counter. The table has one row for each tag, which records the next unused id.
//   - A range is a number of consecutive ids [start, end) that one process has fetched from a row.
//   - A store is the table, as a [Store] accesses it. A store gives each range to one process only.
//   - A fetch is one request to the store. It takes a range: it raises the row's next unused id to the range's end.
//   - To move a row up is to raise its next unused id. A row is above or below an id if its next unused id is.
//   - The step is the row's number of ids for a fetch.
//   - A span is a part of a range in memory. A segment is the span in use.
//   - A mark is a text at the end of a row's description. It names the server on which ids were last fetched from
//     the row.
//   - A jump is a fetch by which a row with another server's mark is moved up by a random number of ids, the margin.
//
// A call costs one atomic addition while ids are in memory. The next range is fetched before the ids run out: when
// half of them are used, or earlier if the rate of use and the duration of a fetch require it.
//
// The first range of a generator holds 16 ids, or the row's step if that is less, so that a program that runs for a
// second wastes few ids. The first range is longer if the waiting calls want more ids. The second range holds as many
// ids as the row's step; the first call after 5 seconds fetches it even if most of the first range is unused. After a
// range that lasted less than 15 minutes, the next range holds twice as many ids, up to 1,000,000 or the row's step.
// After a range that lasted more than 30 minutes, the next range holds half as many, down to the row's step. If
// package driver gives ids to a key column smaller than BIGINT, ranges are smaller.
//
// Rows that bring their own key are announced with [Generator.Skip]: afterwards no id up to that key is issued by
// this generator, or from a range that any process fetches later. Package driver also searches the table for rows
// that were not announced, and discards the ids in memory that these rows have.
//
// While the store is unavailable, ids in memory are still issued, and fetches are attempted in the background, at
// most a second apart. A call that finds no ids waits for one attempt, either the current one or the next one.
// If the attempt fails, the call fails with the attempt's error. A store that has not answered within 5 seconds may
// only be slow: each further attempt has twice the time, up to a minute. A call without a deadline waits at
// most a minute. An error that describes the row, such as *UnknownTagError, is returned immediately, and each
// further call queries the table again.
//
// A generator remembers the highest id that it fetched and refuses ranges below this id. So it detects a row that is
// lowered, recreated or restored while the generator exists (*RolledBackError). A process that starts afterwards
// cannot detect such a row.
//
// The ids of one generator ascend. Ids that remain in memory when a process ends are lost. The rest of a range is
// also lost if it is too short for the consecutive ids of one call. The package does not store ids on disk or return
// them to the table: a row whose next id is lowered can give a range twice.
//
// The designs are in docs/design/segments.md and docs/design/failover.md.
package segment
