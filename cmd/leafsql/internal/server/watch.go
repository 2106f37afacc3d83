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

// watch asks the store once a second, so that the log says when it is away though nobody
// asks whether the server is ready. Before, it makes leaf_alloc where it is to.
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

// storeChanged tells the log that the store is away, or back.
func (s *Server) storeChanged(err error) {
	if err == nil {
		s.log.Info("leafsql: leaf_alloc gives ids again")
		return
	}
	s.log.Warn("leafsql: leaf_alloc gives no ids", "err", err, "way out", wayOut(err))
}

// wayOut is what to do about an error of the store.
func wayOut(err error) string {
	switch {
	case servererr.Is(err, servererr.NoSuchTable):
		return "leafsql init creates the table, and so does this server when it starts with leafCreate=true in the DSN"
	case databases.Denied(err):
		return "GRANT SELECT, UPDATE on leaf_alloc to this user, for leafCreate=true also CREATE"
	}
	return databases.WayOut(err)
}

// createTable creates leaf_alloc if it is missing, and reports whether that is
// over: a refusal is told and ends it, and a server that is away does not.
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

// kindOf is equal for errors of one cause: their texts may hold the numbers of ports.
func kindOf(err error) uint16 {
	if e, ok := errors.AsType[*mysql.MySQLError](err); ok {
		return e.Number
	}
	return 0
}

// refusals are the tags that failed last time though the store answers. true says that its
// answer was the reason; false, that something else was, such as a right that is missing.
type refusals struct {
	mu   sync.Mutex
	tags map[string]bool
}

// refused reports whether the store has said that a tag gives no ids.
func (s *Server) refused(tag string) bool {
	s.refusals.mu.Lock()
	defer s.refusals.mu.Unlock()
	return s.refusals.tags[tag]
}

// failed tells the log that a tag gives no ids, unless that is so of all of them, or was told.
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

// works notes that a tag gives ids. While none fails that is one atomic load.
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

// shown are the statistics as the page shows them: to whoever asks, where no token is
// needed.
func (s *Server) shown() (driver.Stats, error) {
	stats := s.connector.Stats()
	if s.cfg.Token == "" {
		stats = process.Hidden(stats)
	}
	return stats, nil
}
