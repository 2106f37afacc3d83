// Package segment issues ids from ranges that it fetches from a table. Each generator
// serves one tag. It works like the segment mode of Leaf, and can share Leaf's table
// leaf_alloc with running Java servers.
//
//	store := segment.NewAllocStore(sqlx.NewDb(pool, "mysql"), "leaf_alloc")
//	orders := segment.New(store, "orders", nil)
//	defer orders.Close()
//	id, err := orders.Next(ctx, 1)
//
// [SequenceStore] is the same on a plain table of sequences, t_sequence.
//
// A call costs one atomic addition while ids are in memory. The next range is fetched
// before they run out: when half are gone, or earlier if the rate at which they go and
// the time a fetch takes ask for it. The first range of a generator holds 16 ids at most
// (or as many as are wanted, or the row's step if that is less), so that a program that
// runs for a second wastes little. The second range holds the row's step; it is also
// fetched when ids are still wanted after 5 seconds. From then on a range holds twice as
// many ids as the one before if that lasted less than 15 minutes (up to 1,000,000, or the
// row's step if that is more), and half as many if it lasted more than 30 minutes (down
// to the row's step). If package driver gives ids to a key column smaller than BIGINT, ranges are
// smaller.
//
// Rows that bring their own key are announced with [Generator.Skip]: no id up to that
// key is issued afterwards, by this generator or by any range fetched later. Package driver
// also looks in the table for rows that were not announced, and discards the ids in memory that these rows have.
//
// When the store is away, ids in memory are issued as ever while attempts go on in the
// background, at most a second apart. A call that finds none left waits for one attempt,
// the one under way or the next one. If that fails, the call fails with its cause. It
// waits at most for the pause before the next attempt and for that attempt, or until its
// context ends. A store that has not answered within 5 seconds may only be slow: each
// further attempt has twice the time, up to a minute. A call without a deadline waits a
// minute at most. An error that is the table's own answer, such as *UnknownTagError, is
// returned at once, and each further call asks the table again.
//
// A generator remembers the highest id it fetched and refuses ranges below. So it notices
// if the row is lowered, recreated or restored while the generator lives
// (*RolledBackError). A process that starts afterwards cannot know.
//
// The ids of one generator ascend. Ids that are left in memory when a process ends are lost.
// So is the rest of a range that is too short for the consecutive ids of one call. The package keeps no ids
// on disk and gives none back, since every way to lower a row can issue a range twice.
package segment
