package ids

import (
	"strings"
	"sync"
)

// A Home is the location of a store's table, as far as it is known. Stores with the same home
// fetch ids from the same rows.
type Home struct {
	Server string // the server's address, "" if unknown
	DB     string
	Table  string
	Named  bool // the configuration names the store explicitly
}

// isSame reports whether two homes are known to be the same.
func (h Home) isSame(o Home) bool {
	return h.Server != "" && h.Server == o.Server && strings.EqualFold(h.DB, o.DB) && strings.EqualFold(h.Table, o.Table)
}

// openStores holds the stores that are not closed yet.
var openStores sync.Map

// eachOpenStore ranges over the stores that are not closed yet.
func eachOpenStore(yield func(*Store) bool) {
	openStores.Range(func(s, _ any) bool { return yield(s.(*Store)) })
}

// warnMu serializes the search for other stores with an equal tag.
var warnMu sync.Mutex

// warnSameTag warns, once for each store, if another pool of the process draws ids for an equal tag
// from another store, as after a database was cloned with its leaf_alloc. It does not warn
// if the configuration names both stores explicitly.
func (s *Store) warnSameTag(tag Tag) {
	if o := s.findSameTag(tag); o != nil {
		s.Logger.Warn("leafsql: two pools of this process use the same tag in different stores, so both issue the same ids",
			"tag", tag.Name, "store", o.Name, "other_store", s.Name,
			"hint", "set leafStore=DSN to the same store in both; if equal ids do no harm, set it in each pool to that pool's store")
	}
}

// findSameTag returns a store with another home and an equal tag, nil if there is none or s has already warned.
func (s *Store) findSameTag(tag Tag) *Store {
	warnMu.Lock()
	defer warnMu.Unlock()
	for o := range eachOpenStore {
		if s.warned || s.Home.Server == "" || o.Home.Server == "" || s.Home.isSame(o.Home) || s.Home.Named && o.Home.Named {
			continue
		}
		if o.existingCounter(tag) != nil {
			s.warned, o.warned = true, true
			return o
		}
	}
	return nil
}

// NoteDropped records that a statement on a server may have dropped or emptied a table. An empty table means
// all tables of a database, and an empty db means any database. All stores of the process that may have
// lost rows read their rows again. If dropped is set, the whole database was certainly dropped. Then the counters
// whose ids were used only in this database start again.
func NoteDropped(server, db, table string, dropped bool) {
	for s := range eachOpenStore {
		h := s.Home
		if h.Server != server || db != "" && !strings.EqualFold(h.DB, db) ||
			table != "" && !strings.EqualFold(table, h.Table) && !strings.EqualFold(table, SequenceTable) {
			continue
		}
		s.mu.Lock()
		for _, c := range s.counters {
			if dropped && len(c.databases) == 1 && c.databases[server+"/"+strings.ToLower(db)] {
				c.Restart()
			}
		}
		s.mu.Unlock()
		s.Epoch.Add(1)
	}
}
