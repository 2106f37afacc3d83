package ids

import (
	"context"
	"strings"
	"sync"
)

// A Home says where a store's table is, as far as that is known. Stores with the same one
// draw from the same rows.
type Home struct {
	Server string // its address
	DB     string
	Table  string
	Named  bool // the configuration names it itself: whoever shares it does so on purpose
}

// same says whether two homes are known to be the same.
func (h Home) same(o Home) bool {
	return h.Server != "" && h.Server == o.Server && strings.EqualFold(h.DB, o.DB) && strings.EqualFold(h.Table, o.Table)
}

// alive are the stores that are not closed yet.
var alive sync.Map

func living() (all []*Store) {
	alive.Range(func(s, _ any) bool {
		all = append(all, s.(*Store))
		return true
	})
	return all
}

// telling is held while a store looks for others with an equal tag.
var telling sync.Mutex

// warnOther says, once a store, that another pool of the process draws ids for an equal tag
// from another place, as it does where a database was cloned, leaf_alloc with it. Whoever
// names both places has chosen them.
func (s *Store) warnOther(c Counter) {
	if o := s.other(c); o != nil {
		s.log.Warn("leafsql: two pools of this process take ids for an equal tag from different stores, which give out the same ids",
			"tag", c.Name, "store", o.name, "other store", s.name,
			"way out", "name one store for both: leafStore=DSN; or, where equal ids do no harm, each pool's own")
	}
}

// other is a store of another place with an equal tag; nil where there is none, or s was told.
func (s *Store) other(c Counter) *Store {
	telling.Lock()
	defer telling.Unlock()
	for _, o := range living() {
		if s.warned || s.home.Server == "" || o.home.Server == "" || s.home.same(o.home) || s.home.Named && o.home.Named {
			continue
		}
		o.mu.Lock()
		_, both := o.generators[c]
		o.mu.Unlock()
		if both {
			s.warned, o.warned = true, true
			return o
		}
	}
	return nil
}

// Gone notes that a statement on a server may have dropped or emptied a table, or with an
// empty name a whole database; an empty db may be any. All stores of the process whose rows
// it may have taken have them looked at again. dropped says that the database is gone for
// sure: counters that fed tables in there alone begin again.
func Gone(server, db, table string, dropped bool) {
	for _, s := range living() {
		h := s.home
		if h.Server != server || db != "" && !strings.EqualFold(h.DB, db) ||
			table != "" && !strings.EqualFold(table, h.Table) && !strings.EqualFold(table, SequenceTable) {
			continue
		}
		s.mu.Lock()
		for c, feeds := range s.feeds {
			if g := s.generators[c]; dropped && g != nil && len(feeds) == 1 && feeds[server+"/"+strings.ToLower(db)] {
				g.Restart()
			}
		}
		s.mu.Unlock()
		s.epoch.Add(1)
	}
}

// Epoch changes when rows that were looked at may be gone.
func (s *Store) Epoch() int64 { return s.epoch.Load() }

// Feeds notes that a counter feeds a table in a database of a server.
func (s *Store) Feeds(c Counter, server, db string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.feeds[c] == nil {
		s.feeds[c] = make(map[string]bool)
	}
	s.feeds[c][server+"/"+strings.ToLower(db)] = true
}

// Above is where a counter's row may begin that is added: above all that any pool of this
// process knows to be taken.
func (s *Store) Above(ctx context.Context, c Counter) (above int64, err error) {
	for _, o := range living() {
		if o != s && !o.home.same(s.home) {
			continue
		}
		o.mu.Lock()
		g := o.generators[c]
		o.mu.Unlock()
		if g == nil {
			continue
		}
		k, err := g.Above(ctx)
		if err != nil {
			return 0, err
		}
		above = max(above, k)
	}
	return above, nil
}
