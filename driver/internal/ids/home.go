package ids

import (
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

func living(yield func(*Store) bool) {
	alive.Range(func(s, _ any) bool { return yield(s.(*Store)) })
}

// telling is held while a store looks for others with an equal tag.
var telling sync.Mutex

// warnOther says, once a store, that another pool of the process draws ids for an equal tag
// from another place, as it does where a database was cloned, leaf_alloc with it. Whoever
// names both places has chosen them.
func (s *Store) warnOther(tag Tag) {
	if o := s.other(tag); o != nil {
		s.log.Warn("leafsql: two pools of this process take ids for an equal tag from different stores, which give out the same ids",
			"tag", tag.Name, "store", o.Name, "other store", s.Name,
			"way out", "name one store for both: leafStore=DSN; or, where equal ids do no harm, each pool's own")
	}
}

// other is a store of another place with an equal tag; nil where there is none, or s was told.
func (s *Store) other(tag Tag) *Store {
	telling.Lock()
	defer telling.Unlock()
	for o := range living {
		if s.warned || s.home.Server == "" || o.home.Server == "" || s.home.same(o.home) || s.home.Named && o.home.Named {
			continue
		}
		if o.known(tag) != nil {
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
	for s := range living {
		h := s.home
		if h.Server != server || db != "" && !strings.EqualFold(h.DB, db) ||
			table != "" && !strings.EqualFold(table, h.Table) && !strings.EqualFold(table, SequenceTable) {
			continue
		}
		s.mu.Lock()
		for _, c := range s.counters {
			if dropped && len(c.feeds) == 1 && c.feeds[server+"/"+strings.ToLower(db)] {
				c.Restart()
			}
		}
		s.mu.Unlock()
		s.Epoch.Add(1)
	}
}
