package segment

import "context"

// Methods for package driver, exported to the tests.

func (g *Generator) Above(ctx context.Context) (int64, error) {
	return (*controlled)(g).FirstUnused(ctx)
}
func (g *Generator) Look(ctx context.Context) (Range, error) { return g.readRow(ctx) }
func (g *Generator) Fit(highest int64)                       { (*controlled)(g).Fit(highest) }
func (g *Generator) Restart()                                { (*controlled)(g).Restart() }

func (g *Generator) DropInUse(highest int64, below func(limit int64) (int64, error)) error {
	return (*controlled)(g).DropInUse(highest, below)
}
