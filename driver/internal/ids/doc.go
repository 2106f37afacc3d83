// Package ids holds where ids come from, shared by all pools of the process: the
// generators that draw on one leaf_alloc ([Store]), and the snowflakes that are made
// with one worker id ([Snowflakes]).
//
//	store, err := ids.OpenStore(ids.StoreConfig{Key: dsn, Connector: connector, Table: "leaf_alloc"})
//	first, err := store.Counter(ids.Tag{Name: "orders"}).Next(ctx, 3)
//	err = store.Close()
//
// Opening the same Store or Snowflakes twice gives the same one, which is closed when its
// last user closes it. The package knows no tables, rules or DSNs, and reads no row
// before an id is wanted.
package ids
