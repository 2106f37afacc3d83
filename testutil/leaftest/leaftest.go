// Package leaftest stands in for Meituan's Leaf, the Java program, in tests of those who share leaf_alloc with it. Leaf itself is
// in no package repository. What is done here to the rows of leaf_alloc, and in which order, is what Leaf's source does as of its
// last commit, 86a6441.
//
//	segments := leaftest.Segments{DB: db}
//	id, err := segments.Next(ctx, "orders")
//
// It has no HTTP server and no prefetching thread.
package leaftest
