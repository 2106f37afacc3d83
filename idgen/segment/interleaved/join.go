package interleaved

import (
	"context"
	"fmt"

	"github.com/leafsql/leafsql/idgen"
	"github.com/leafsql/leafsql/idgen/segment/internal/tagrow"
)

// join creates the rows that members lack, and makes new ones part of the cluster. All
// members have to answer. first is the lowest id that may be given where no member has the
// tag; -1 leaves such a tag alone.
func (s *Store) join(ctx context.Context, tag string, first, step int64) error {
	before, epoch, err := s.addRows(ctx, tag, first, step)
	if err != nil {
		return err
	}
	after, err := s.pollAll(ctx, tag)
	if err != nil {
		return err
	}
	var rows []state
	var added []int
	cluster, latest := "", int64(-1)
	for k, r := range after {
		switch {
		case r.err != nil:
			return r.err
		case before[k].err != nil || r.incarnation != before[k].incarnation:
			return fmt.Errorf("leafsql: tag %q in %v: the row was created again meanwhile; try again", tag, s.members[k])
		case r.isNew():
			added = append(added, k)
		case cluster != "" && r.cluster != cluster:
			return s.members[k].mismatch(tag, "its rows belong to other stores than those of the ones before", "name the stores that were named first, or "+startOver)
		default:
			cluster = r.cluster
			latest = max(latest, r.epoch)
		}
		rows = append(rows, r.state)
		epoch = max(epoch, r.epoch)
	}
	switch {
	case len(added) == 0:
		return nil
	case cluster == "" || cluster == clusterOf(rows): // nobody has drawn from the new ones' predecessors: there were none
		cluster = clusterOf(rows)
	case len(added) == 1:
		epoch = latest + 1
	default:
		return s.members[added[1]].mismatch(tag, fmt.Sprintf("it has lost its row, and so has store %d, so that nobody knows which ids they gave out", added[0]+1), startOver)
	}
	return s.startEpoch(ctx, tag, added[0], epoch, after, cluster)
}

// addRows adds rows to the members that lack them, and returns what all have replied since,
// and an epoch that is not before any of theirs.
func (s *Store) addRows(ctx context.Context, tag string, first, step int64) (polled []reply, epoch int64, err error) {
	if polled, err = s.pollAll(ctx, tag); err != nil {
		return nil, 0, err
	}
	there := 0
	if first > 1 {
		epoch = s.members[0].epochAbove(first - 1)
	}
	for _, r := range polled {
		if r.err == nil {
			epoch, step = max(epoch, r.epoch), r.step
			there++
		}
	}
	if there == len(polled) {
		return polled, epoch, nil
	}
	if there == 0 && first < 0 {
		return nil, 0, s.members[0].unknown(tag)
	}
	for k, r := range polled {
		if r.err == nil {
			continue
		}
		m := s.members[k]
		if n, _ := tagrow.ServerError(r.err); n == tagrow.ErrNoTable {
			if err := m.alloc.Create(ctx); err != nil {
				return nil, 0, err
			}
		}
		start, ok := m.blockStart(epoch)
		if !ok {
			return nil, 0, fmt.Errorf("%w: tag %q in %s", idgen.ErrExhausted, tag, m.rows.Table)
		}
		if err := m.addRow(ctx, tag, start, step); err != nil {
			return nil, 0, err
		}
	}
	// The new rows are there now. What the others know is asked after that.
	polled, err = s.pollAll(ctx, tag)
	return polled, epoch, err
}
