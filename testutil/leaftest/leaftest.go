// Package leaftest stands in for Meituan's Leaf, the Java program, in tests of those who share leaf_alloc or worker ids with
// it. Leaf itself is in no package repository. What is done here, and in which order, is what Leaf's source does as of its last
// commit, 86a6441: to the rows of leaf_alloc, and to ZooKeeper's nodes.
//
//	segments := leaftest.Segments{DB: db}
//	id, err := segments.Next(ctx, "orders")
//
//	leaf, err := leaftest.Start(ctx, leaftest.Config{Name: "shop", Addr: "10.0.0.7:8080", ZooKeeper: []string{s.Addr}})
//	leaf.Worker // goes into its ids
//	leaf.Stop() // its node stays, as of a Leaf that has ended
//
// It has no HTTP server, no prefetching thread, no local file with the worker id to start from while ZooKeeper is away, and
// makes no snowflakes.
package leaftest
