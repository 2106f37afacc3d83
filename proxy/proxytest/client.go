// Package proxytest has a client of MySQL's protocol that keeps every payload that it receives, and a Twin. A Twin runs
// one script directly on a server and through a proxy, and compares the answers. The package parses the protocol itself
// and shares no code with package proxy, which it tests.
//
//	twin := proxytest.Twin{Direct: serverAddr, Through: proxyAddr, Options: proxytest.Options{User: "root", Database: "shop"}}
//	twin.Run(t, func(c *proxytest.Client) {
//		c.Query("SELECT 1")
//	})
package proxytest

import (
	"bufio"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"time"
)

// The capabilities of a client. Those from bit 32 on are MariaDB's.
const (
	LongPassword = 1 << iota // for MariaDB: the client has none of its own capabilities
	FoundRows
	LongFlag
	ConnectWithDB
	NoSchema
	Compress
	ODBC
	LocalFiles
	IgnoreSpace
	Protocol41
	Interactive
	SSL
	IgnoreSigpipe
	Transactions
	Reserved
	SecureConnection
	MultiStatements
	MultiResults
	PSMultiResults
	PluginAuth
	ConnectAttrs
	PluginAuthLenenc
	ExpiredPasswords
	SessionTrack
	DeprecateEOF
	OptionalMetadata
	ZSTD
	QueryAttributes
	MultiFactor

	Progress         = 1 << 32
	Bulk             = 1 << 34
	ExtendedMetadata = 1 << 35
	CacheMetadata    = 1 << 36
	BulkUnitResults  = 1 << 37
)

// Common has the capabilities of most clients.
const Common = LongPassword | LongFlag | Protocol41 | Transactions | SecureConnection | MultiResults | PSMultiResults | PluginAuth | PluginAuthLenenc

// Timeout is the time that a client waits for a packet.
var Timeout = time.Minute

// Compressed makes every client request compression.
var Compressed bool

// Options configure the login of a client.
type Options struct {
	Capabilities             uint64 // Common if zero; ConnectWithDB, ConnectAttrs and SSL are added where they are used
	User, Password, Database string
	Plugin                   string // mysql_native_password if empty
	TLS                      *tls.Config
	EarlyHello               bool   // send the beginning of the TLS handshake in the same write as the request for it
	AfterTLS                 uint64 // capabilities in the login that follows the request for TLS; the capabilities of the request if zero
	Attributes               map[string]string
	Unrequested              uint64 // capabilities that are never requested
	ForceCapabilities        bool   // request capabilities even if the server does not offer them
	Collation                byte   // utf8mb4_general_ci if zero
	From                     string // the client's own IP address; any if empty
	Preamble                 string // sent before everything else
	MaxContent               int    // maximum of bytes in a compressed frame; the protocol's maximum if zero
}

// A Client is one connection. Its methods record failures in their answers, so that a script always runs to its
// end. It is not safe for concurrent use.
type Client struct {
	Conn         net.Conn
	Capabilities uint64                     // capabilities that both sides agreed on
	Offered      uint64                     // capabilities that the server offered
	Thread       uint32                     // id of the connection
	Answers      []Answer                   // all answers, the login first
	File         func(name string) [][]byte // returns the frames that answer LOCAL INFILE, without the empty one at the end
	Slow         io.Writer                  // if not nil, commands are written to it instead of Conn

	in          *bufio.Reader
	compression *compressedConn // nil if the connection is not compressed
	seq         byte            // number of the next frame
	pending     []sentCommand
	hidden      string
	brokenErr   error // the reason why no more packets are read
	plugin      string
	scramble    []byte
	opts        Options
}

// Dial connects to addr and logs in. Callers have to close the client.
func Dial(addr string, opts Options) (*Client, error) {
	if opts.Capabilities == 0 {
		opts.Capabilities = Common
	}
	if Compressed {
		opts.Capabilities |= Compress
	}
	if opts.Plugin == "" {
		opts.Plugin = "mysql_native_password"
	}
	network := "tcp"
	if addr[0] == '/' {
		network = "unix"
	}
	dialer := net.Dialer{Timeout: Timeout}
	if opts.From != "" {
		dialer.LocalAddr = &net.TCPAddr{IP: net.ParseIP(opts.From)}
	}
	conn, err := dialer.Dial(network, addr)
	if err != nil {
		return nil, fmt.Errorf("proxytest: %w", err)
	}
	c := &Client{Conn: conn, in: bufio.NewReaderSize(conn, 1<<16), opts: opts}
	c.Conn.SetDeadline(time.Now().Add(Timeout))
	io.WriteString(c.Conn, opts.Preamble)
	login := Answer{Name: "login"}
	if login.Closed = c.login(&login); login.Closed == nil {
		if number, text := login.Err(); number != 0 {
			login.Closed = fmt.Errorf("error %d: %s", number, text)
		}
	}
	c.Answers = append(c.Answers, login)
	if login.Closed != nil {
		conn.Close()
		return c, fmt.Errorf("proxytest: login: %w", login.Closed)
	}
	if c.has(Compress) {
		c.startCompression()
	}
	return c, nil
}

func (c *Client) login(a *Answer) error {
	p, err := c.readNext(a, Greeting)
	if err != nil {
		return err
	}
	if p[0] == 0xFF {
		a.Packets[0].Kind = Err
		return nil
	}
	g := cursor{p[1:]}
	g.zero() // version
	c.Thread = uint32(g.uint(4))
	scramble := slices.Clone(g.bytes(8))
	g.bytes(1)
	c.Offered = g.uint(2)
	g.bytes(3) // character set, status
	c.Offered |= g.uint(2) << 16
	length := int(g.uint(1))
	g.bytes(6)
	extended := g.uint(4)
	if c.Offered&LongPassword == 0 { // MariaDB
		c.Offered |= extended<<32 | LongPassword
	}
	scramble = append(scramble, g.bytes(max(13, length-8))[:12]...)

	want := c.opts.Capabilities
	for bit, used := range map[uint64]bool{ConnectWithDB: c.opts.Database != "", ConnectAttrs: c.opts.Attributes != nil, SSL: c.opts.TLS != nil} {
		if used {
			want |= bit
		}
	}
	if want>>32 != 0 {
		want &^= LongPassword
	}
	if !c.opts.ForceCapabilities {
		want &= c.Offered
	}
	c.Capabilities = want &^ c.opts.Unrequested
	c.scramble = scramble
	return c.respond(a)
}

// Socket returns the connection without compression.
func (c *Client) Socket() net.Conn {
	if c.compression != nil {
		return c.compression.Conn
	}
	return c.Conn
}

func (c *Client) has(capability uint64) bool { return c.Capabilities&capability != 0 }

func (c *Client) respond(a *Answer) error {
	collation := c.opts.Collation
	if collation == 0 {
		collation = 45 // utf8mb4_general_ci
	}
	b := binary.LittleEndian.AppendUint32(nil, uint32(c.Capabilities))
	b = append(binary.LittleEndian.AppendUint32(b, 1<<30), collation)
	b = binary.LittleEndian.AppendUint32(append(b, make([]byte, 19)...), uint32(c.Capabilities>>32))
	if c.has(SSL) {
		request := frames(&c.seq, b)
		if !c.opts.EarlyHello {
			c.Conn.Write(request)
			request = nil
		}
		conn := tls.Client(&withHello{c.Conn, request}, c.opts.TLS)
		if err := conn.Handshake(); err != nil {
			return err
		}
		c.Conn = conn
		c.in.Reset(conn)
		if c.opts.AfterTLS != 0 {
			binary.LittleEndian.PutUint32(b, uint32(c.opts.AfterTLS))
		}
	}
	c.plugin = c.opts.Plugin
	b = append(append(b, c.opts.User...), 0)
	switch token := c.passwordProof(); {
	case c.has(PluginAuthLenenc):
		b = appendText(b, string(token))
	case c.has(SecureConnection):
		b = append(append(b, byte(len(token))), token...)
	default:
		b = append(append(b, token...), 0)
	}
	if c.has(ConnectWithDB) {
		b = append(append(b, c.opts.Database...), 0)
	}
	if c.has(PluginAuth) {
		b = append(append(b, c.plugin...), 0)
	}
	if c.has(ConnectAttrs) {
		b = appendText(b, attributes(c.opts.Attributes))
	}
	if c.has(ZSTD) {
		b = append(b, 3)
	}
	c.Conn.Write(frames(&c.seq, b))
	return c.authenticate(a)
}

// withHello writes pending bytes together with the first bytes that follow.
type withHello struct {
	net.Conn
	pending []byte
}

func (w *withHello) Write(p []byte) (int, error) {
	_, err := w.Conn.Write(append(w.pending, p...))
	w.pending = nil
	return len(p), err
}

func attributes(of map[string]string) string {
	var b []byte
	for name, value := range of {
		b = appendText(appendText(b, name), value)
	}
	return string(b)
}

// authenticate answers the server's requests until an OK or an error.
func (c *Client) authenticate(a *Answer) error {
	for {
		p, err := c.readNext(a, Auth)
		if err != nil {
			return err
		}
		last := &a.Packets[len(a.Packets)-1]
		switch {
		case p[0] == 0x00:
			last.Kind = OK
			return nil
		case p[0] == 0xFF:
			last.Kind = Err
			return nil
		case p[0] == 0xFE: // another plugin
			r := cursor{p[1:]}
			c.plugin = r.zero()
			c.scramble = slices.Clone(r.bytes(20))
			c.Conn.Write(frames(&c.seq, c.passwordProof()))
		case p[0] == 0x01 && len(p) == 2 && p[1] == 3: // the server has cached the password; an OK follows
		case p[0] == 0x01 && len(p) == 2 && p[1] == 4 && c.has(SSL):
			c.Conn.Write(frames(&c.seq, append([]byte(c.opts.Password), 0)))
		case p[0] == 0x01 && len(p) == 2 && p[1] == 4:
			c.Conn.Write(frames(&c.seq, []byte{2})) // requests the public key
		case p[0] == 0x01:
			secret, err := encryptPassword(p[1:], c.opts.Password, c.scramble)
			if err != nil {
				return err
			}
			c.Conn.Write(frames(&c.seq, secret))
		default:
			return fmt.Errorf("an authentication packet that begins with %#x", p[0])
		}
	}
}

// passwordProof returns the proof that the client has the password.
func (c *Client) passwordProof() []byte {
	if c.opts.Password == "" {
		return nil
	}
	password := []byte(c.opts.Password)
	if c.plugin == "caching_sha2_password" {
		once := sha256.Sum256(password)
		twice := sha256.Sum256(once[:])
		with := sha256.Sum256(append(twice[:], c.scramble...))
		return xor(once[:], with[:])
	}
	once := sha1.Sum(password)
	twice := sha1.Sum(once[:])
	with := sha1.Sum(append(slices.Clone(c.scramble), twice[:]...))
	return xor(once[:], with[:])
}

func encryptPassword(key []byte, password string, scramble []byte) ([]byte, error) {
	block, _ := pem.Decode(key)
	if block == nil {
		return nil, errors.New("the server's key is not in the form of PEM")
	}
	public, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil {
		return nil, err
	}
	return rsa.EncryptOAEP(sha1.New(), rand.Reader, public.(*rsa.PublicKey), xor(append([]byte(password), 0), scramble), nil)
}

func xor(a, with []byte) []byte {
	out := make([]byte, len(a))
	for i := range a {
		out[i] = a[i] ^ with[i%len(with)]
	}
	return out
}
