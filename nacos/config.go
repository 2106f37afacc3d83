package nacos

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/leafsql/leafsql/idgen/worker"
)

// Config says where the registry is, for Open. Its zero fields have defaults.
type Config struct {
	Servers     []Server // of one cluster; at least one, unless ConfigClient is set
	ContextPath string   // of the HTTP API; "/nacos"

	Namespace string // its id, not its name; "" or "public" is the default one
	Group     string // "DEFAULT_GROUP"
	Service   string // of the instances, and the prefix of the documents; "leafsql"

	Username string // "" where the servers want none
	Password string

	TLS       *tls.Config // nil: no TLS
	PlainHTTP bool        // with TLS: only gRPC has it, the HTTP API does not

	Instance Instance // how this process shows in the console

	// ConfigClient and NamingClient are the SDK's clients of an application
	// that has them, used instead of Servers. Namespace and credentials are
	// then theirs. They stay open. Without a NamingClient the process does
	// not show in the console. 1.4 can't be reached through them. To which
	// server such a client goes can't be seen, so only the first is tried
	// for its compare-and-set: all of them must be 2.3 or later, and of one
	// cluster.
	ConfigClient ConfigClient
	NamingClient NamingClient

	Logger *slog.Logger // of warnings; slog.Default()
}

// Server is the address of a Nacos server.
type Server struct {
	Host     string
	Port     int // of HTTP; 8848
	GRPCPort int // Port + 1000
}

func (s Server) http() string { return net.JoinHostPort(s.Host, strconv.Itoa(s.Port)) }
func (s Server) grpc() string { return net.JoinHostPort(s.Host, strconv.Itoa(s.GRPCPort)) }

// Instance is what the worker's entry in the service list says. A service that
// is registered in Nacos gives its own address here.
type Instance struct {
	IP       string            // the address this machine reaches the servers from
	Port     int               // one that tells processes with equal IP apart; the worker id + 1
	Cluster  string            // "DEFAULT"
	Metadata map[string]string // added to the package's own
}

// String names the registry, without secrets.
func (c Config) String() string {
	names := make([]string, len(c.Servers))
	for i, s := range c.Servers {
		names[i] = s.http()
	}
	return cmp.Or(strings.Join(names, ","), "the application's client")
}

// LogValue is String: %v and slog must not show the password.
func (c Config) LogValue() slog.Value { return slog.StringValue(c.String()) }

// GoString is String too.
func (c Config) GoString() string { return c.String() }

// names are those that Nacos takes for services, groups and namespaces.
var names = regexp.MustCompile(`^[A-Za-z0-9_.:-]{1,100}$`)

// complete fills the defaults in.
func (c *Config) complete() error {
	c.Group = cmp.Or(c.Group, "DEFAULT_GROUP")
	c.Service = cmp.Or(c.Service, "leafsql")
	c.Instance.Cluster = cmp.Or(c.Instance.Cluster, "DEFAULT")
	c.ContextPath = "/" + strings.Trim(cmp.Or(c.ContextPath, "nacos"), "/")
	c.Logger = cmp.Or(c.Logger, slog.Default())
	if c.Namespace == "public" {
		c.Namespace = "" // one namespace, two names: documents must not depend on which
	}
	for _, n := range []string{c.Group, c.Service, cmp.Or(c.Namespace, "public"), c.Instance.Cluster} {
		if !names.MatchString(n) {
			return fmt.Errorf("leafsql: Nacos: %q can't be a namespace, group, service or cluster; use letters, digits and _ . : -", n)
		}
	}
	if c.NamingClient != nil && c.ConfigClient == nil {
		return errors.New("leafsql: Nacos: a NamingClient without a ConfigClient; leases need the config service, so pass both")
	}
	if len(c.Servers) == 0 && c.ConfigClient == nil {
		return errors.New("leafsql: Nacos: no server; write for example nacos(n1:8848,n2:8848)")
	}
	c.Servers = slices.Clone(c.Servers)
	for i := range c.Servers {
		s := &c.Servers[i]
		s.Port = cmp.Or(s.Port, 8848)
		s.GRPCPort = cmp.Or(s.GRPCPort, s.Port+1000)
	}
	if c.Instance.IP == "" {
		c.Instance.IP = c.localIP()
	}
	return nil
}

// localIP is the address that packets to the first server leave from. No
// packet is sent to find out.
func (c *Config) localIP() string {
	to := "192.0.2.1:9" // of no network
	if len(c.Servers) > 0 {
		to = c.Servers[0].http()
	}
	conn, err := net.Dial("udp", to)
	if err != nil {
		return "127.0.0.1"
	}
	defer conn.Close()
	return conn.LocalAddr().(*net.UDPAddr).IP.String()
}

// parse reads the source's spec and options from a DSN.
func parse(address string, opts worker.Options) (Config, error) {
	var c Config
	p := parser{opts: opts}
	c.Namespace = p.text("Namespace")
	c.Group = p.text("Group")
	c.Service = p.text("Service")
	c.Username = p.text("Username")
	c.Password = p.text("Password")
	c.ContextPath = p.text("ContextPath")
	c.PlainHTTP = p.flag("PlainHTTP")
	c.Instance.IP = p.text("IP")
	c.Instance.Port = p.port("Port")
	c.Instance.Cluster = p.text("Cluster")
	grpcPort := p.port("GRPCPort")
	c.TLS = p.tls()
	if err := cmp.Or(opts.Only(p.known...), p.err); err != nil {
		return Config{}, err
	}
	if strings.Contains(address, "@") { // what stands before it is not for logs
		return Config{}, errors.New("leafsql: Nacos: an @ in the servers' addresses; write host:port alone, and who logs in as leafNacosUsername and leafNacosPassword")
	}
	for _, a := range strings.Split(address, ",") {
		s, err := parseServer(strings.TrimSpace(a))
		if err != nil {
			return Config{}, err
		}
		s.GRPCPort = grpcPort
		c.Servers = append(c.Servers, s)
	}
	return c, nil
}

func parseServer(a string) (Server, error) {
	host, port := a, ""
	if strings.LastIndexByte(a, ':') > strings.LastIndexByte(a, ']') {
		var err error
		if host, port, err = net.SplitHostPort(a); err != nil {
			return Server{}, fmt.Errorf("leafsql: Nacos: server %q: %w; write host:port", a, err)
		}
	}
	s := Server{Host: strings.Trim(host, "[]")}
	if s.Host == "" || strings.ContainsAny(s.Host, "/?# ") {
		return Server{}, fmt.Errorf("leafsql: Nacos: server %q is not of the form host:port; write for example nacos(n1:8848,n2:8848)", a)
	}
	if port != "" {
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil || n == 0 {
			return Server{}, fmt.Errorf("leafsql: Nacos: server %q: no port number; write host:port", a)
		}
		s.Port = int(n)
	}
	return s, nil
}

// parser reads options and remembers which there are, and what was wrong.
type parser struct {
	opts  worker.Options
	known []string
	err   error
}

func (p *parser) text(name string) string {
	p.known = append(p.known, name)
	return p.opts[name]
}

func (p *parser) fail(name, want string) {
	if p.err == nil {
		p.err = fmt.Errorf("leafsql: leafNacos%s=%s: want %s", name, p.opts[name], want)
	}
}

func (p *parser) flag(name string) bool {
	s := p.text(name)
	v, err := strconv.ParseBool(cmp.Or(s, "false"))
	if err != nil {
		p.fail(name, "true or false")
	}
	return v
}

func (p *parser) port(name string) int {
	s := p.text(name)
	n, err := strconv.ParseUint(cmp.Or(s, "0"), 10, 16)
	if err != nil || s == "0" {
		p.fail(name, "a port number")
	}
	return int(n)
}

// tls reads the certificates' files now: a mistake in them has to be an error
// at the start.
func (p *parser) tls() *tls.Config {
	mode, ca, cert, key := p.text("TLS"), p.text("CA"), p.text("Cert"), p.text("Key")
	switch mode {
	case "", "false":
		if ca+cert+key != "" {
			p.fail("TLS", "true beside leafNacosCA, leafNacosCert and leafNacosKey")
		}
		return nil
	case "true", "skip-verify":
	default:
		p.fail("TLS", "true, false or skip-verify")
		return nil
	}
	conf := &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: mode == "skip-verify"}
	if ca != "" {
		pem, err := os.ReadFile(ca)
		conf.RootCAs = x509.NewCertPool()
		if err != nil || !conf.RootCAs.AppendCertsFromPEM(pem) {
			p.fail("CA", "a file of certificates in PEM form")
		}
	}
	if cert+key != "" {
		pair, err := tls.LoadX509KeyPair(cert, key)
		if err != nil {
			p.fail("Cert", "a certificate in PEM form that leafNacosKey belongs to")
		}
		conf.Certificates = []tls.Certificate{pair}
	}
	return conf
}

// metadata gives the instance's metadata with the package's own added.
func (in Instance) metadata(own map[string]string) map[string]string {
	m := maps.Clone(in.Metadata)
	if m == nil {
		m = make(map[string]string, len(own))
	}
	maps.Copy(m, own)
	return m
}
