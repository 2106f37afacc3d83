package proxy

import (
	"bytes"
	"database/sql/driver"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/go-sql-driver/mysql"

	leafdriver "github.com/leafsql/leafsql/driver"
	"github.com/leafsql/leafsql/idgen"
	"github.com/leafsql/leafsql/idgen/segment"
	"github.com/leafsql/leafsql/internal/fill"
	"github.com/leafsql/leafsql/internal/wire"
)

// serveQuery serves COM_QUERY.
func (s *session) serveQuery(p []byte) error {
	at, err := wire.FindQueryText(p, s.server.caps&wire.QueryAttrs != 0)
	if err != nil { // the server may still find a statement in it
		return s.client.sendMalformed()
	}
	s.server.attributes = slices.Clone(p[1:at])
	text := string(p[at:])
	local := hideSocket(text)
	_, err = s.runText(local, local == text, false)
	return err
}

// hideSocket replaces @@socket by an empty value in a text that only reads system variables and ends with @@socket.
// Otherwise Rust's mysql and mysql_async would connect to the server's socket, and not to the proxy. It returns other
// texts unchanged.
func hideSocket(text string) string {
	before, found := strings.CutSuffix(text, "@@socket")
	if variables, ok := strings.CutPrefix(before, "SELECT "); !found || !ok || strings.Trim(variables, "@,_abcdefghijklmnopqrstuvwxyz") != "" {
		return text
	}
	return before + "'' AS `@@socket`"
}

// runText runs a text. If whole is set, text is the unchanged text of the command. Otherwise hideSocket has changed
// the text, or it is one of several statements, from fill.Plan.Parts. more is set if further statements follow. ok is
// false if the statement failed.
func (s *session) runText(text string, whole, more bool) (ok bool, err error) {
	s.setBackslashEscapes()
	plan, err := s.filler.Plan(&s.server.waits, text)
	if err != nil {
		return false, s.sendFailure(err)
	}
	if !plan.Fills() {
		a := answer{more: more}
		if whole {
			ok, err = s.resend(&a)
		} else if err = s.server.sendCommand(s.server.appendQuery(nil, text)); err == nil {
			ok, err = s.server.relay(&a)
		}
		if err == nil {
			s.filler.RecordSent(plan, false, a.failure)
		}
		return ok, err
	}
	parts := plan.Parts(text)
	if parts == nil {
		a, err := s.filler.Run(&s.server.waits, plan)
		return s.sendResult(a, err, more)
	}
	for i, part := range parts {
		if ok, err = s.runText(part, false, more || i < len(parts)-1); !ok || err != nil {
			return false, err
		}
	}
	return true, nil
}

// setBackslashEscapes passes the sql_mode flag of the server's last status, NO_BACKSLASH_ESCAPES, to package driver
// if the flag is reliable. Otherwise the driver queries the session. Another proxy in front of the server may have
// written the status: ProxySQL keeps the flag after COM_RESET_CONNECTION, and does not set the flag if the mode is
// the server's default. Therefore an unset flag is trusted only after the query of a session has confirmed it, and only
// until the query of a session contradicts the status.
func (s *session) setBackslashEscapes() {
	on := s.server.status&wire.NoBackslashEscapes != 0
	known := !s.server.modeChanged && !s.server.isStatusStale
	if was, asked := s.filler.NoBackslashEscapes(); asked && known {
		switch {
		case was != on:
			s.proxy.statusContradicted.Store(true)
		case !on && !s.proxy.statusConfirmed.Load():
			s.proxy.statusConfirmed.Store(true)
		}
	}
	s.filler.SetBackslashEscapes(known && !on && s.proxy.statusConfirmed.Load() && !s.proxy.statusContradicted.Load())
}

// sendResult sends the client the answer to a filled statement, or the error with which it failed. ok is false
// if the statement failed, even after its first rows.
func (s *session) sendResult(a fill.Answer, failure error, more bool) (ok bool, err error) {
	if failure != nil {
		return false, s.sendFailure(failure)
	}
	s.proxy.counts.filled.Add(1)
	if rows, ok := a.Rows.(*reply); ok {
		return s.sendRows(rows, more)
	}
	r, ok := a.Result.(*reply)
	if !ok { // no statement was sent, because there were no rows to write
		r = new(reply)
		affected, _ := a.Result.RowsAffected()
		r.ok = wire.OK{Affected: uint64(affected), Status: s.server.status}
	}
	if r.headPackets != nil {
		return s.sendRows(r, more)
	}
	// The client receives the session's current status, and not the status in this answer: autocommit may have been
	// off during an internal step.
	result := r.ok
	result.ID = uint64(a.ID)
	const sessions = wire.InTransaction | wire.Autocommit | wire.NoBackslashEscapes
	result.Status = result.Status&^(sessions|wire.MoreResults) | s.server.status&sessions
	info, changes := result.Info(s.server.caps)
	if source, ok := a.Source.(*reply); ok {
		result.Warnings = addWarnings(result.Warnings, source.ok.Warnings)
		if loaded, _ := source.ok.Info(s.server.caps); bytes.Contains(loaded, []byte("Deleted: ")) {
			info = formatLoadInfo(loaded, result.Affected, result.Warnings)
			result.ID = 0 // servers also return 0
		} else if records, _, ok := bytes.Cut(info, []byte("Warnings: ")); ok {
			info = fmt.Appendf(nil, "%sWarnings: %d", records, result.Warnings)
		}
	}
	if len(s.server.gtids) > 0 && len(wire.FilterGTIDs(changes)) == 0 {
		changes = append(slices.Clone(changes), s.server.gtids...)
	}
	s.server.gtids = nil // the next statement of the text has other GTIDs
	result.SetInfo(s.server.caps, info, changes)
	if more {
		result.Status |= wire.MoreResults
	}
	var room [64]byte // for most results
	return true, s.client.send(result.Append(room[:0]))
}

func addWarnings(a, b uint16) uint16 { return uint16(min(int(a)+int(b), 1<<16-1)) }

// formatLoadInfo returns the info of LOAD DATA, which ran as two internal statements. loaded is the info of the
// first statement, affected is the count of the second, and warnings is the sum for both. affected includes the rows
// that REPLACE deleted, but not the rows that were skipped because their keys existed already.
func formatLoadInfo(loaded []byte, affected uint64, warnings uint16) []byte {
	_, rest, _ := bytes.Cut(loaded, []byte("Records: "))
	digits, _, _ := bytes.Cut(rest, []byte(" "))
	records, _ := strconv.ParseUint(string(digits), 10, 64)
	deleted, skipped := max(affected, records)-records, max(affected, records)-affected
	return fmt.Appendf(nil, "Records: %d  Deleted: %d  Skipped: %d  Warnings: %d", records, deleted, skipped, warnings)
}

// sendRows sends the client rows of which only headPackets were read.
func (s *session) sendRows(r *reply, more bool) (ok bool, err error) {
	if more && !s.server.deprecatesEOF() {
		r.headPackets[len(r.headPackets)-1][wire.EOFStatusAt] |= wire.MoreResults
	}
	if err := s.client.send(r.headPackets...); err != nil {
		return false, err
	}
	r.ended = true
	return s.server.relay(&answer{state: rows, more: more})
}

// Error numbers of leafsql's own errors. Programs that retry after conflicts do not retry after these numbers, except
// after numberUnfilled.
const (
	numberRefused = 1235 // ER_NOT_SUPPORTED_YET
	// ER_LOCK_WAIT_TIMEOUT: ids did not arrive, or leafsql's own account cannot reach the server. The statement
	// did not run, and the transaction stays open.
	numberUnfilled = 1205
	numberOther    = 1105 // ER_UNKNOWN_ERROR
)

// sendFailure sends the client the error of a statement that did not run, or failed.
func (s *session) sendFailure(err error) error {
	var server *mysql.MySQLError
	switch {
	case s.server.lostErr != nil: // the client notices that the connection ended
		return s.server.lostErr
	case errors.As(err, &server) && error(server) == err:
		return s.client.send(wire.Err{Number: server.Number, State: server.SQLState, Message: server.Message}.Append(nil))
	case s.ctx.Err() != nil: // the server's connection ended while the statement waited for ids
		return s.server.passFinalError()
	case errors.Is(err, leafdriver.ErrRefused):
		s.proxy.counts.refused.Add(1)
		return s.client.sendError(numberRefused, "42000", err.Error())
	case errors.As(err, new(*leafdriver.FillError)), errors.As(err, new(net.Error)),
		errors.Is(err, driver.ErrBadConn), errors.Is(err, mysql.ErrInvalidConn): // leafsql's own account lost its connection
		s.proxy.counts.unfilled.Add(1)
		return s.client.sendError(numberUnfilled, "HY000", s.clientMessage(err))
	}
	return s.client.sendError(numberOther, "HY000", s.clientMessage(err))
}

var errInLog = errors.New("the cause is in the log of leafsql proxy")

// clientMessage returns an error's text for the client. Causes may contain leafsql's own account, its host, or a
// server's address: they are only logged.
func (s *session) clientMessage(err error) string {
	text := "leafsql: " + errInLog.Error()
	if fill, ok := errors.AsType[*leafdriver.FillError](err); ok {
		switch fill.Err.(type) {
		case *segment.UnknownTagError, *segment.RowError, *segment.RolledBackError, *idgen.CountError:
			return err.Error()
		}
		text = (&leafdriver.FillError{Table: fill.Table, Rows: fill.Rows, Key: fill.Key, Err: errInLog}).Error()
	}
	s.proxy.causeLine.logger(s.proxy.cfg.Logger).Warn("leafsql: a statement of a client failed", "err", err)
	return text
}
