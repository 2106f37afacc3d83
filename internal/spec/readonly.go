package spec

import "context"

type readOnlyKey struct{}

// WithReadOnly returns a context that, when passed to the function that opens a source, requests a source that
// writes nothing into its registry, also not to test it. A Put of that source fails.
func WithReadOnly(ctx context.Context) context.Context {
	return context.WithValue(ctx, readOnlyKey{}, true)
}

// IsReadOnly reports whether ctx comes from WithReadOnly.
func IsReadOnly(ctx context.Context) bool { return ctx.Value(readOnlyKey{}) != nil }
