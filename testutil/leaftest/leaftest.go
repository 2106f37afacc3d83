// Package leaftest replaces Meituan's Leaf, the Java program, in tests of applications that share leaf_alloc with it.
// Leaf itself is in no package repository. The package changes the rows of leaf_alloc in the same way and order as
// Leaf's source at its last commit, 86a6441.
//
//	segments := leaftest.Segments{DB: db}
//	id, err := segments.Next(ctx, "orders")
//
// It has no HTTP server and no prefetching thread.
package leaftest
