package driver

import (
	"context"

	"github.com/leafsql/leafsql/idgen"
	"github.com/leafsql/leafsql/idgen/segment"
)

// Tags reads all rows of leaf_alloc, ordered by tag.
func (c *Connector) Tags(ctx context.Context) ([]segment.Row, error) {
	if c.ids.alloc() == nil {
		return nil, errNoAlloc
	}
	rows, err := c.ids.alloc().Tags(ctx)
	if err != nil {
		return nil, c.allocError(c.cfg.AllocTable, "reading its tags", err)
	}
	return rows, nil
}

// Tag reads one row of leaf_alloc, without taking an id. A tag without one is
// a *segment.UnknownTagError. Names compare as the table's collation says: the
// row's own name may be written in another case. Of several leaf_alloc it is that
// of the first.
func (c *Connector) Tag(ctx context.Context, tag string) (segment.Row, error) {
	if c.ids.alloc() == nil {
		return segment.Row{}, errNoAlloc
	}
	return readRow(ctx, c.ids.alloc(), tag, 0)
}

var errNoAlloc = &ConfigError{"Config.SegmentStore", "it replaces leaf_alloc, whose rows cannot be read then", "ask the store itself"}

// Segment returns the generator of a tag, for ids without an INSERT: the one
// that tables with this tag draw from. It ends with the Connector. No server is
// asked before the first id, and a tag without a row is an error then. Each name
// ever asked for is kept in memory: ask [Connector.Tag] first where names come
// from outside.
func (c *Connector) Segment(tag string) idgen.Generator {
	return c.ids.segments.generator(Segment, tag)
}

// Snowflake returns the generator of snowflakes, for ids without an INSERT: the
// one that tables draw from. It ends with the Connector, and is nil where no
// source of worker ids is configured. A worker id is leased when the first id is
// drawn.
func (c *Connector) Snowflake() idgen.Generator {
	if c.ids.snowflakes == nil {
		return nil
	}
	return c.ids.snowflakes
}
