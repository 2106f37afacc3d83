package proxy

import (
	"bytes"
	"crypto/tls"
	sqldriver "database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/leafsql/leafsql/internal/fill"
	"github.com/leafsql/leafsql/internal/wire"
)

const (
	loginTimeout = 10 * time.Second // time limit of a whole login
	maxLoginSize = 96 << 10         // servers accept 64 KiB of attributes, and little else
)

// hiddenCaps are the capabilities of servers that the proxy does not offer: they would change packets that it parses,
// or the table that a statement writes (NoSchema). Compression is offered if the server offers it, but is not used on
// the server's connection: see compress.go.
const (
	hiddenCaps       = wire.ZstdCompress | wire.OptionalMeta | wire.NoSchema
	offeredMariaCaps = wire.MariaExtendedMeta | wire.MariaBulk
)

// errLogin means that a client's login failed, and that the client has received the reason.
var errLogin = errors.New("the login failed")

// handshake logs the client in at the server: it passes on the server's greeting, and the server accepts or
// refuses the login.
func (s *session) handshake() error {
	s.setReadDeadline(time.Now().Add(loginTimeout))
	defer s.setReadDeadline(time.Time{})
	p, err := s.server.readPacket(readBufferSize)
	if err != nil {
		return wrapServerGone(err)
	}
	s.client.seq = 0
	if len(p) > 0 && p[0] == wire.FirstErr { // too many connections, or the host is blocked
		s.isLoginDecided = true
		s.client.send(p)
		return errLogin
	}
	greeting, err := wire.ParseGreeting(p)
	if err != nil {
		return s.denyLogin(2027, "", "leafsql: the server's greeting is not that of MySQL or MariaDB; check the address of -server")
	}
	caps := greeting.Caps &^ hiddenCaps
	if s.proxy.cfg.TLS == nil {
		caps &^= wire.SSL
	}
	greeting.SetCaps(caps, greeting.MariaCaps&offeredMariaCaps)
	if err := s.client.send(p); err != nil {
		return err
	}

	p, err = s.client.readPacket(maxLoginSize)
	if err != nil {
		return s.denyUnreadLogin(err)
	}
	login, err := wire.ParseLogin(p)
	const forTLS = wire.SSL | wire.Protocol41
	if err == nil && login.Caps&forTLS == forTLS && caps&wire.SSL != 0 && login.Caps&^caps&hiddenCaps == 0 {
		if p, login, err = s.startTLS(p); err != nil {
			return err
		}
	} else if s.proxy.cfg.RequireTLS {
		return s.denyLogin(3159, "HY000", "Connections using insecure transport are prohibited while --require-tls is set for leafsql proxy.")
	} else if s.proxy.network == "unix" && !strings.Contains(greeting.Version, "MariaDB") { // MySQL would expect passwords in clear text
		return s.denyLogin(3159, "HY000", "leafsql: MySQL is reached through its unix socket, which requires clients with TLS; use TLS, or set -server to the server's host and port")
	}
	switch {
	case err != nil, login.Caps&^caps&(hiddenCaps|wire.SSL|wire.Compress) != 0, login.MariaCaps&^greeting.MariaCaps != 0: // the client uses capabilities that were not offered
		return s.denyLogin(1043, "08S01", "Bad handshake")
	case login.Caps&wire.Protocol41 == 0:
		return s.denyLogin(1251, "08004", "Client does not support authentication protocol requested by server; consider upgrading MySQL client")
	}
	s.server.caps = login.Caps & caps
	if s.server.caps&wire.QueryAttrs != 0 {
		s.server.noAttributes = wire.NoAttributes
		s.server.attributes = s.server.noAttributes
	}
	s.login = fill.Login{Account: s.account(login.User), Database: login.Database, FoundRows: s.server.caps&wire.FoundRows != 0, MultiStatements: s.server.caps&wire.MultiStatement != 0}
	if err := s.sendLogin(p); err != nil {
		return err
	}
	if err = s.authenticate(); err == nil && s.server.caps&wire.Compress != 0 {
		s.startCompression()
	}
	return err
}

// account returns the account by which the server identifies a user, with the client's address if the server
// receives it. It returns "" if the name is ambiguous.
func (s *session) account(user string) string {
	if strings.ContainsFunc(user, func(r rune) bool { return r >= utf8.RuneSelf }) { // in another character set the bytes may be another name
		return ""
	}
	if s.proxy.cfg.ServerProxyProtocol {
		return user + "@" + s.client.address.Addr().String()
	}
	return user + "@"
}

// setReadDeadline sets the read deadline of both sides; the zero time means no deadline.
func (s *session) setReadDeadline(until time.Time) {
	s.client.raw.SetReadDeadline(until)
	s.server.raw.SetReadDeadline(until)
}

// denyLogin ends a login with an error for the client.
func (s *session) denyLogin(number uint16, state, message string) error {
	s.client.sendError(number, state, message)
	return errLogin
}

// sendLogin sends the server the client's login, or its request for TLS, in p.
func (s *session) sendLogin(p []byte) error {
	s.server.seq = s.client.seq - 1
	p[0] &^= wire.Compress // see compress.go
	return wrapServerGone(s.server.send(p))
}

// startTLS starts TLS with the server and with the client, which requested it in p, and reads the client's login.
func (s *session) startTLS(p []byte) ([]byte, wire.Login, error) {
	request := slices.Clone(p)
	if err := s.sendLogin(p); err != nil {
		return nil, wire.Login{}, err
	}
	if len(s.server.buffered()) > 0 { // these bytes would be mistaken for data received through TLS
		return nil, wire.Login{}, errors.New("the server sent more than its greeting before TLS")
	}
	server := tls.Client(s.server.conn, s.proxy.cfg.ServerTLS)
	if err := server.Handshake(); err != nil {
		return nil, wire.Login{}, wrapServerGone(err)
	}
	s.server.conn = server
	early := bytes.Clone(s.client.buffered()) // bytes of a client that started TLS before the proxy's answer
	s.client.discard(len(early))
	s.client.release()
	client := tls.Server(replayConn{s.client.conn, io.MultiReader(bytes.NewReader(early), s.client.conn)}, s.proxy.cfg.TLS)
	if err := client.Handshake(); err != nil {
		return nil, wire.Login{}, err
	}
	s.client.conn = client
	p, err := s.client.readPacket(maxLoginSize)
	if err != nil {
		return nil, wire.Login{}, s.denyUnreadLogin(err)
	}
	copy(p, request) // servers use the capabilities of the request and ignore those of the login
	login, err := wire.ParseLogin(p)
	return p, login, err
}

// A replayConn first returns bytes that were already read from the connection.
type replayConn struct {
	net.Conn
	reader io.Reader
}

func (c replayConn) Read(b []byte) (int, error) { return c.reader.Read(b) }

// authenticate passes the packets of an authentication on, in both directions, until the server accepts or
// refuses the login. With some plugins the server sends two packets in a row, with others the client answers
// each packet, so either side may send the next packet. If a client's packet does not have the sequence number of an
// answer, it may be a command that the client sent early.
func (s *session) authenticate() error {
	var expected atomic.Uint32
	expected.Store(noSequence)
	answers := make(chan error, 1)
	go func() {
		err := errLogin
		defer func() { answers <- err }()
		defer s.recoverPanic()
		if err = s.passClientAnswers(&expected); err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
			s.server.raw.SetReadDeadline(pastDeadline) // the server would wait for an answer that does not arrive
		}
	}()
	last, err := s.passServerQuestions(&expected)
	s.client.raw.SetReadDeadline(pastDeadline) // the client sends no further answers
	early := <-answers
	s.client.raw.SetReadDeadline(time.Time{})
	s.client.wipe()
	if err == nil && s.proxy.network == "unix" && len(last) > 0 && last[0] == wire.FirstOK {
		frame := bytes.Clone(s.server.frame)
		if last = frame[wire.HeaderLen:]; s.isProcessLogin() {
			s.isLoginDecided, s.client.seq = true, frame[3]
			s.client.sendError(1045, "28000", "leafsql: the account logs in as the operating system user of leafsql proxy (unix_socket, auth_socket); use an account with a password")
			return errors.New("the server took a client for this process")
		}
		s.server.frame = frame
	}
	switch {
	case err == nil:
		err = s.client.write(s.server.frame)
	case early != nil && !errors.Is(early, os.ErrDeadlineExceeded):
		err = early // the reason why the server's last packet is missing
	}
	if err != nil {
		return err
	}
	return s.finishLogin(last)
}

// isProcessLogin reports whether the server may have logged the client in because of the operating system user of
// this process, which is at the other end of the server's unix socket. The plugins unix_socket and auth_socket do
// this, also in combination with another plugin.
func (s *session) isProcessLogin() bool {
	s.server.maxPacket = max(s.server.maxPacket, smallBufferSize) // maxPacket is not known during a login
	rows, err := s.server.query("SHOW CREATE USER CURRENT_USER()", nil)
	account, text := []sqldriver.Value{""}, ""
	if err == nil {
		err = rows.Next(account)
		text = fmt.Sprintf("%s", account[0]) // the buffer of the value is reused after Close
		err = errors.Join(err, rows.Close())
	}
	return err != nil || strings.Contains(strings.ToLower(text), "_socket")
}

// noSequence is a number that no frame has.
const noSequence = 1 << 8

// passClientAnswers passes the client's packets on while they are numbered as answers.
func (s *session) passClientAnswers(expected *atomic.Uint32) error {
	for {
		_, seq, err := s.client.peekHeader()
		if err != nil || uint32(seq) != expected.Load() {
			return err
		}
		if _, err = s.client.readPacket(readBufferSize); err != nil {
			return err
		}
		if err := s.server.write(s.client.frame); err != nil {
			return wrapServerGone(err)
		}
	}
}

// passServerQuestions passes the server's packets on up to the last one, an OK or error, which it returns.
func (s *session) passServerQuestions(expected *atomic.Uint32) (last []byte, err error) {
	for {
		p, err := s.server.readPacket(readBufferSize)
		if err != nil || len(p) == 0 || p[0] == wire.FirstOK || p[0] == wire.FirstErr {
			return p, wrapServerGone(err)
		}
		expected.Store(uint32(s.server.seq))
		if err := s.client.write(s.server.frame); err != nil {
			return nil, err
		}
	}
}

// recoverPanic is deferred by the goroutines of a session: a panic in the proxy ends one session and not all.
func (s *session) recoverPanic() {
	if p := recover(); p != nil {
		s.proxy.counts.panics.Add(1)
		s.proxy.cfg.Logger.Error("leafsql: a session of the proxy ended because of a bug in leafsql", "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
	}
}

// finishLogin parses the server's last packet of a login. It returns errLogin if the login failed. Then the
// session ends, since the server ends its connection; for the exception see serveChangeUser.
func (s *session) finishLogin(p []byte) error {
	defer s.server.release()
	s.isLoginDecided = true
	if len(p) == 0 || p[0] != wire.FirstOK {
		s.proxy.counts.failedLogins.Add(1)
		return errLogin
	}
	ok, err := wire.ParseOK(p)
	s.server.status, s.server.isStatusStale = ok.Status, true
	return err
}

// resetState is called when the server has reset the session and discarded its temporary tables, prepared statements and
// settings.
func (s *session) resetState(login fill.Login, knownDB bool) {
	s.login = login
	s.dropStatements()
	s.server.modeChanged = false
	s.filler.Reset(login, knownDB)
}

// serveChangeUser serves COM_CHANGE_USER.
func (s *session) serveChangeUser(p []byte) (quit bool, err error) {
	user, database, err := wire.ParseChangeUser(p, s.server.caps)
	if err != nil {
		return true, s.denyLogin(1043, "08S01", "Bad handshake")
	}
	if err := s.server.sendCommand(p); err != nil {
		return true, err
	}
	s.client.hasFrameTimeout = false
	defer func() { s.client.hasFrameTimeout = true }()
	s.setReadDeadline(time.Now().Add(loginTimeout))
	defer s.setReadDeadline(time.Time{})
	switch err := s.authenticate(); err {
	case nil:
		login := s.login
		login.Account, login.Database = s.account(user), database
		s.resetState(login, true)
		return false, nil
	case errLogin: // MySQL ends the connection; MariaDB resets the session, which still belongs to the previous user
		s.resetState(s.login, false)
		s.server.isStatusStale = true // the error contained no status
		return false, nil
	default:
		return true, err
	}
}
