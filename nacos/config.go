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

// Config is the address of the registry, for Open. Its zero fields have defaults.
type Config struct {
	Servers     []Server // servers of one cluster; at least one, unless ConfigClient is set
	ContextPath string   // path of the HTTP API; default "/nacos"

	Namespace string // namespace id, not its name; "" or "public" is the default namespace
	Group     string // default "DEFAULT_GROUP"
	Service   string // name of the instances' service and prefix of the documents; default "leafsql"

	Username string // "" if the servers need none
	Password string

	TLS       *tls.Config // nil: no TLS
	PlainHTTP bool        // use TLS for gRPC only, not for the HTTP API

	Instance Instance // entry of this process in the console

	// ConfigClient and NamingClient are SDK clients of the application, used instead of Servers
	// (config_client.IConfigClient and naming_client.INamingClient; a few of their methods
	// suffice). Their namespace and credentials apply. The
	// ConfigClient's NamespaceId must be empty for the default namespace: "public" is an error,
	// since the config service of Nacos 2 treats "" and "public" as different namespaces. Its
	// DisableUseSnapShot must be true, otherwise Open returns an error: with an old text from the
	// client's disk a process could take a worker id that another process holds. Open cannot check the
	// settings of a client of another type than the SDK's. The SDK refuses more than five reads of a document
	// a second, so leafsql spreads its reads. Open and the
	// source do not close the clients. Without a NamingClient the process is not shown in the
	// console. Nacos 1.4 is not supported with clients. The server that a client uses is
	// unknown, so the compare-and-set is checked only once: all servers must be 2.3 or later,
	// and belong to one cluster. The clients cannot read the servers' clock. So a process with
	// a clock far ahead takes worker ids that others hold, and blocks them until the other clocks
	// reach its time.
	ConfigClient configClient
	NamingClient namingClient

	Logger *slog.Logger // logger of warnings; default slog.Default()

	readOnly bool // write nothing, so the compare-and-set of servers is not checked
}

// Server is the address of a Nacos server.
type Server struct {
	Host           string
	Port, GRPCPort int // ports of HTTP, default 8848, and of gRPC, default Port + 1000
}

func (s Server) http() string { return net.JoinHostPort(s.Host, strconv.Itoa(s.Port)) }
func (s Server) grpc() string { return net.JoinHostPort(s.Host, strconv.Itoa(s.GRPCPort)) }

// Instance is the worker's entry in the service list. An application that is
// registered in Nacos sets its own address here.
type Instance struct {
	IP       string            // default: the address from which this machine reaches the servers
	Port     int               // distinguishes processes with the same IP; default 10000 + the worker id
	Cluster  string            // default "DEFAULT"
	Metadata map[string]string // added to the package's metadata
}

// String returns the servers, without secrets.
func (c Config) String() string {
	names := make([]string, len(c.Servers))
	for i, s := range c.Servers {
		names[i] = s.http()
	}
	return cmp.Or(strings.Join(names, ","), "the application's client")
}

// name returns the registry's name, for logs and errors.
func (c Config) name() string {
	servers := c.String()
	if c.ConfigClient != nil {
		servers = "through " + servers
	}
	namespace := "default namespace" // not "public", which is another namespace of the config service of Nacos 2
	if c.Namespace != "" {
		namespace = "namespace " + c.Namespace
	}
	return fmt.Sprintf("Nacos %s, %s, group %s, service %s", servers, namespace, c.Group, c.Service)
}

// urls returns the URLs of the servers' HTTP APIs.
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

// LogValue returns String as a value: %v and slog must not show the password.
func (c Config) LogValue() slog.Value { return slog.StringValue(c.String()) }

// GoString returns String.
func (c Config) GoString() string { return c.String() }

// names matches the names that Nacos accepts for services, groups and namespaces, such as
// "shop.orders:1".
var names = regexp.MustCompile(`^[A-Za-z0-9_.:-]{1,100}$`)

// complete sets the defaults and returns an error for invalid fields.
func (c *Config) complete() error {
	c.Group = cmp.Or(c.Group, "DEFAULT_GROUP")
	c.Service = cmp.Or(c.Service, "leafsql")
	c.Instance.Cluster = cmp.Or(c.Instance.Cluster, "DEFAULT")
	c.ContextPath = "/" + strings.Trim(cmp.Or(c.ContextPath, "nacos"), "/")
	c.Logger = cmp.Or(c.Logger, slog.Default())
	if c.Namespace == "public" {
		c.Namespace = "" // the default namespace has two names, which must lead to the same documents
	}
	for _, n := range []string{c.Group, c.Service, cmp.Or(c.Namespace, "public"), c.Instance.Cluster} {
		if !names.MatchString(n) {
			return fmt.Errorf("leafsql: Nacos: %q can't be a namespace, group, service or cluster; use letters, digits and _ . : -", n)
		}
	}
	if c.NamingClient != nil && c.ConfigClient == nil {
		return errors.New("leafsql: Nacos: a NamingClient is set without a ConfigClient; pass both, because leases need the config service")
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

// localIP returns the local address for packets to the first server. It sends
// no packet.
func (c *Config) localIP() string {
	to := "192.0.2.1:9" // address that is reserved for documentation
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
