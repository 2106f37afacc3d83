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
	tick := time.NewTicker(probeEvery)
	defer tick.Stop()
	create := s.create
	for {
		create = create && !s.createTable(ctx)
		s.askStore()
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

func (s *Server) askStore() error { return s.probe.ask(s.storeAnswers, s.storeChanged) }

// storeChanged logs that the store is unreachable, or reachable again.
func (s *Server) storeChanged(err error) {
	if err == nil {
		s.log.Info("leafsql: leaf_alloc gives ids again")
		return
	}
	s.log.Warn("leafsql: leaf_alloc gives no ids", "err", err, "way out", wayOut(err))
}

// wayOut returns a hint for an error of the store.
func wayOut(err error) string {
	switch {
	case servererr.Is(err, servererr.NoSuchTable):
		return "leafsql init creates the table, and so does this server when it starts with leafCreate=true in the DSN"
	case databases.Denied(err):
		return "GRANT SELECT, UPDATE on leaf_alloc to this user, for leafCreate=true also CREATE"
	}
	return databases.WayOut(err)
}

// createTable creates leaf_alloc if it is missing, and reports whether the caller is done: a refusal is logged
// and is final, but an unreachable server is not.
func (s *Server) createTable(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
	defer cancel()
	set, err := databases.Open(ctx, s.cfg.DSN, nil)
	if err != nil {
		return false
	}
	defer set.Close()
	err = segment.NewAllocStore(sqlx.NewDb(set.Store.DB, "mysql"), set.Store.Plain()).Create(ctx)
	_, refused := errors.AsType[*mysql.MySQLError](err)
	if refused {
		s.log.Warn("leafsql: leaf_alloc could not be created", "err", err, "way out", "leafsql init as a user with the right, or: "+wayOut(err))
	}
	return err == nil || refused
}

// kindOf returns the number of a server's error, or 0: errors with the same cause may differ in their texts, as
// in port numbers.
func kindOf(err error) uint16 {
	if e, ok := errors.AsType[*mysql.MySQLError](err); ok {
		return e.Number
	}
	return 0
}

// refusals are the tags whose last request failed although the store answers. The value is true if the answer
// was the reason, and false for another reason, such as a missing right.
type refusals struct {
	mu   sync.Mutex
	tags map[string]bool
}

// refused reports whether the store has answered that a tag gives no ids.
func (s *Server) refused(tag string) bool {
	s.refusals.mu.Lock()
	defer s.refusals.mu.Unlock()
	return s.refusals.tags[tag]
}

// failed logs that a tag gives no ids, unless all tags fail or it was logged already.
func (s *Server) failed(tag string, err error) {
	s.refusals.mu.Lock()
	said, told := s.refusals.tags[tag]
	if s.refusals.tags == nil {
		s.refusals.tags = make(map[string]bool)
	}
	s.refusals.tags[tag] = said || isAnswer(err)
	s.refusals.mu.Unlock()
	if told {
		return
	}
	s.failing.Add(1)
	go func() {
		if !isAnswer(err) && s.askStore() != nil {
			s.works(tag, false)
			return
		}
		s.log.Warn("leafsql: a tag gives no ids", "tag", tag, "err", err)
	}()
}

// works records that a tag gives ids. While no tag fails, it takes one atomic load.
func (s *Server) works(tag string, say bool) {
	if s.failing.Load() == 0 {
		return
	}
	s.refusals.mu.Lock()
	_, failed := s.refusals.tags[tag]
	delete(s.refusals.tags, tag)
	s.refusals.mu.Unlock()
	if !failed {
		return
	}
	s.failing.Add(-1)
	if say {
		s.log.Info("leafsql: a tag gives ids again", "tag", tag)
	}
}

// shown returns the statistics for the page. Without a token they contain no users and hosts, since everybody
// can read the page.
func (s *Server) shown() (driver.Stats, error) {
	stats := s.connector.Stats()
	if s.cfg.Token == "" {
		stats = process.Hidden(stats)
	}
	return stats, nil
}
