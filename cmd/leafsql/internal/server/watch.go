package server

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jmoiron/sqlx"

	"github.com/leafsql/leafsql/cmd/leafsql/internal/databases"
	"github.com/leafsql/leafsql/cmd/leafsql/internal/process"
	"github.com/leafsql/leafsql/driver"
	"github.com/leafsql/leafsql/idgen/segment"
	"github.com/leafsql/leafsql/internal/servererr"
)

// watch probes the store once a second, so that the log shows an outage even if nothing requests /readyz.
// Before that, it creates leaf_alloc if the settings request it.
func (s *Server) watch(ctx context.Context) {
	tick := time.NewTicker(probeInterval)
	defer tick.Stop()
	create := s.createsAlloc
	for {
		create = create && !s.createTable(ctx)
		s.probeStore()
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

func (s *Server) probeStore() error { return s.probe.run(s.pingStore, s.logStoreChange) }

// logStoreChange logs that the store is unreachable, or reachable again.
func (s *Server) logStoreChange(err error) {
	if err == nil {
		s.log.Info("leafsql: leaf_alloc is available again")
		return
	}
	s.log.Warn("leafsql: leaf_alloc is unavailable", "err", err, "hint", storeHint(err))
}

// storeHint returns a hint for an error of the store.
func storeHint(err error) string {
	switch {
	case servererr.Is(err, servererr.NoSuchTable):
		return "create the table with leafsql init, or restart this server with leafCreate=true in the DSN"
	case databases.IsDenied(err):
		return "GRANT SELECT, UPDATE on leaf_alloc to this user, for leafCreate=true also CREATE"
	}
	return databases.Hint(err)
}

// createTable creates leaf_alloc if it is missing. It returns true if the table exists, or if the server refused
// to create it, which is logged. After any other error it returns false, and the caller has to try again.
func (s *Server) createTable(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
	defer cancel()
	set, err := databases.Open(ctx, s.cfg.DSN, nil)
	if err != nil {
		return false
	}
	defer set.Close()
	err = segment.NewAllocStore(sqlx.NewDb(set.Store.DB, "mysql"), set.Store.PlainName()).Create(ctx)
	_, refused := errors.AsType[*mysql.MySQLError](err)
	if refused {
		s.log.Warn("leafsql: leaf_alloc could not be created", "err", err, "hint", "run leafsql init as a user with the right, or: "+storeHint(err))
	}
	return err == nil || refused
}

// errorNumber returns the number of a server's error, or 0. It is compared instead of the text, since errors with the
// same cause may differ in their texts, for example in port numbers.
func errorNumber(err error) uint16 {
	if e, ok := errors.AsType[*mysql.MySQLError](err); ok {
		return e.Number
	}
	return 0
}

// failedTags contains the tags for which the last request failed although the store answers. A tag's value is true if
// the row is the reason (see isAnswer), and false for other reasons, such as a missing right.
type failedTags struct {
	mu   sync.Mutex
	tags map[string]bool
}

// isTagRefused reports whether the store has answered that a tag has no ids.
func (s *Server) isTagRefused(tag string) bool {
	s.failedTags.mu.Lock()
	defer s.failedTags.mu.Unlock()
	return s.failedTags.tags[tag]
}

// noteFailure logs that a tag has no ids, unless the store is unreachable or this was logged already.
func (s *Server) noteFailure(tag string, err error) {
	s.failedTags.mu.Lock()
	refusedBefore, isLogged := s.failedTags.tags[tag]
	if s.failedTags.tags == nil {
		s.failedTags.tags = make(map[string]bool)
	}
	s.failedTags.tags[tag] = refusedBefore || isAnswer(err)
	s.failedTags.mu.Unlock()
	if isLogged {
		return
	}
	s.failingCount.Add(1)
	go func() {
		if !isAnswer(err) && s.probeStore() != nil {
			s.noteSuccess(tag, false)
			return
		}
		s.log.Warn("leafsql: no ids for a tag", "tag", tag, "err", err)
	}()
}

// noteSuccess records that a tag has ids again, and logs this if say is true. While no tag fails, it takes one
// atomic load.
func (s *Server) noteSuccess(tag string, say bool) {
	if s.failingCount.Load() == 0 {
		return
	}
	s.failedTags.mu.Lock()
	_, failed := s.failedTags.tags[tag]
	delete(s.failedTags.tags, tag)
	s.failedTags.mu.Unlock()
	if !failed {
		return
	}
	s.failingCount.Add(-1)
	if say {
		s.log.Info("leafsql: ids for a tag are available again", "tag", tag)
	}
}

// pageStats returns the statistics for the page. Without a token they contain no users and hosts, since
// everybody can read the page.
func (s *Server) pageStats() (driver.Stats, error) {
	stats := s.connector.Stats()
	if s.cfg.Token == "" {
		stats = process.HideCauses(stats)
	}
	return stats, nil
}
