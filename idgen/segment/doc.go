// Package segment issues ids from ranges fetched from a table, one tag a generator,
// like the segment mode of Leaf, whose table leaf_alloc it can share with running
// Java servers.
//
//	store := segment.NewAllocStore(sqlx.NewDb(pool, "mysql"), "leaf_alloc")
//	orders := segment.New(store, "orders", nil)
//	defer orders.Close()
//	id, err := orders.Next(ctx, 1)
//
// [SequenceStore] is the same on a plain table of sequences, t_sequence.
//
// Package interleaved, below this one, is several leaf_alloc at once, of which any may be
// away.
//
// A call costs one atomic addition while ids are in memory. The next range is fetched
// before they run out: when half are gone, or earlier if the rate at which they go and
// the time a fetch takes ask for it. The first range of a generator holds 16 ids at most
// (or as many as are wanted, or the row's step if that is less), so that a program that
// runs for a second wastes little. The second, which is also fetched when ids are still
// wanted after 5 seconds, holds the row's step; each later one twice as many as the one
// before if that lasted less than 15 minutes (up to 1,000,000 or the row's step), half as
// many after more than 30 minutes (down to the row's step). Where ids go to a small column
// all of them are smaller: see [Generator.Fit].
//
// Rows that bring their own key are announced with [Generator.Skip]: no id up to that
// key is issued afterwards, by this generator or by any range fetched later. For rows that
// were not announced, a caller that can look at them gives up their ids in memory with
// [Generator.DropInUse].
//
// When the store is away, ids in memory are issued as ever while attempts go on in the
// background, at most a second apart. A call that finds none left waits for one attempt,
// the one under way or the next one. If that fails, the call fails with its cause. It waits
// for a pause and for the attempt at most, and less if its context ends. A store that has
// not answered within 5 seconds may be slow: it is asked again with twice the time, up to a
// minute, which is how long a call without a deadline waits. Errors that are the table's
// answer, such as *UnknownTagError, come at once and are asked for anew by each call.
//
// A generator remembers the highest id it fetched and refuses ranges below. So it notices
// if the row is lowered, recreated or restored while the generator lives
// (*RolledBackError). A process that starts afterwards cannot know.
//
// The ids of one generator ascend, except where it goes over from one of several stores
// to another. What is left in memory when a process ends is lost, and so are the ends of
// ranges too short for a block: the package keeps no ids on disk and gives none back,
// since every way to lower a row can issue a range twice.
package segment
