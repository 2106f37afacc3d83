// Package interleaved makes one store of several leaf_alloc tables, on servers of their
// own: any of them will do, and ids come as long as one answers. The package is
// experimental: it may change in any version.
//
//	store := interleaved.New([]interleaved.Table{{DB: a, Name: "leaf_alloc"}, {DB: b, Name: "leaf_alloc"}}, false, nil)
//	defer store.Close()
//	orders := segment.New(store, "orders", nil)
//
// # Glossary
//
// In brackets: what the rows' descriptions, errors and log lines say instead.
//
//   - member (store): one of the tables; of m members the one with index k, counted from 0.
//   - block: 100,000,000 ids. Member k owns the blocks k, k+m, k+2m, …, and gives out their
//     ids alone. A range never crosses a block.
//   - epoch: a block's number divided by m, rounded down: in each epoch every member owns
//     one block. A row is in the epoch of the block that it stands in.
//   - description: what a row says of itself in its column of that name. Each statement
//     compares it.
//   - incarnation (life): a random text, another one each time that a row is created.
//   - cluster (set): the rows that belong together. The description of each has the
//     cluster's name, a hash of the incarnations of the rows that were created first.
//   - new: said of a row from its creation until it has joined the cluster.
//   - state: a row's description, the next id that nobody has, and the block it is in.
//   - sealed: a row that stands at the first id of its block. It gives no ids until it is
//     unsealed, which takes that id: nobody ever gets the first one of a block.
//
// What members do, or a process does with them:
//
//   - advance to an epoch: to seal in it the rows of all members that answer, and then to
//     unseal them.
//   - join: to create the rows that members lack, and to take new ones into the cluster.
//   - catch up: to advance a member that is in an earlier epoch than others that answer,
//     before ids are taken from it. Such a member was away when the others
//     advanced. They may have advanced to pass a key from elsewhere, so that the member's
//     remaining ids may lie below such a key.
//   - current member: the one that gave this process its last ids of a tag, and is asked
//     first for the next ones. It has caught up.
//   - look: to read a member's row. Poll: to look at all members at the same time.
//   - last seen: what a process remembers of a member's row.
//   - probe: to have a member catch up in the background, before it is needed.
//   - hedge: to ask the next member beside one that is slow.
//
// # What keeps a member that lost its rows from giving ids again
//
// A block is unsealed only once another member is in the block's epoch as well, or in a
// later one: so the others know of each epoch that ids were given in. And a row that is
// created again gives nothing before it is in an epoch after all others'.
package interleaved
