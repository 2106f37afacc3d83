package nacos

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
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
	// that has them (config_client.IConfigClient and
	// naming_client.INamingClient, of which a few methods will do), used
	// instead of Servers. Namespace and credentials are
	// then theirs. The ConfigClient's NamespaceId is empty for the default
	// namespace: "public" is an error, since the config service of Nacos 2
	// keeps it apart from the empty one. They stay open. Without a NamingClient the process does
	// not show in the console. 1.4 can't be reached through them. To which
	// server such a client goes can't be seen, so only the first is tried
	// for its compare-and-set: all of them must be 2.3 or later, and of one
	// cluster. They do not show the servers' clock, so that a process whose
	// own is far ahead takes worker ids that are held, and blocks them until
	// their time has come.
	ConfigClient configClient
	NamingClient namingClient

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
	Port     int               // one that tells processes with equal IP apart; 10000 + the worker id
	Cluster  string            // "DEFAULT"
	Metadata map[string]string // added to the package's own
}

// String names the servers, without secrets.
func (c Config) String() string {
	names := make([]string, len(c.Servers))
	for i, s := range c.Servers {
		names[i] = s.http()
	}
	return cmp.Or(strings.Join(names, ","), "the application's client")
}

// name returns the registry's name, for people.
func (c Config) name() string {
	servers := c.String()
	if c.ConfigClient != nil {
		servers = "through " + servers
	}
	return fmt.Sprintf("Nacos %s, namespace %s, group %s, service %s", servers, cmp.Or(c.Namespace, "public"), c.Group, c.Service)
}

// urls are the servers' HTTP APIs.
func (c Config) urls() []string {
	scheme := "http://"
	if c.TLS != nil && !c.PlainHTTP {
		scheme = "https://"
	}
	var urls []string
	for _, s := range c.Servers {
		urls = append(urls, scheme+s.http()+c.ContextPath)
	}
	return urls
}

// LogValue is String: %v and slog must not show the password.
func (c Config) LogValue() slog.Value { return slog.StringValue(c.String()) }

// GoString is String too.
func (c Config) GoString() string { return c.String() }

// names are those that Nacos takes for services, groups and namespaces, such as "shop.orders:1".
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
