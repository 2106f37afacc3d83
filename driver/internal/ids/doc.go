// Package ids holds where ids come from, shared by all pools of the process: the
// generators that draw on one leaf_alloc ([Store]), and the snowflakes that are made
// with one worker id ([Snowflakes]).
//
//	store, err := ids.OpenStore(ids.StoreConfig{Key: dsn, Databases: []ids.Database{{Connector: connector, Table: "leaf_alloc"}}})
//	first, err := store.Counter(ids.Tag{Name: "orders"}).Next(ctx, 3)
//	err = store.Close()
//
// Who opens the same thing twice gets the same one, and it ends with its last user.
// The package knows no tables, rules or DSNs, and reads no row before an id is wanted.
package ids
