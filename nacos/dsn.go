package nacos

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"

	"github.com/leafsql/leafsql/idgen/worker"
	"github.com/leafsql/leafsql/internal/setting"
)

// parse returns the Config for the source's address and options in a DSN.
func parse(address string, opts worker.Options) (Config, error) {
	var c Config
	s := setting.New("Nacos", opts)
	c.Namespace = s.Text("Namespace")
	c.Group = s.Text("Group")
	c.Service = s.Text("Service")
	c.Username = s.Text("Username")
	c.Password = s.Text("Password")
	c.ContextPath = s.Text("ContextPath")
	c.PlainHTTP = s.Flag("PlainHTTP")
	c.Instance.IP = s.Text("IP")
	c.Instance.Port = s.Port("Port")
	c.Instance.Cluster = s.Text("Cluster")
	grpcPort := s.Port("GRPCPort")
	c.TLS = s.TLS()
	if err := s.Err(); err != nil {
		return Config{}, err
	}
	if strings.Contains(address, "@") { // the part before @ may be secret
		return Config{}, errors.New("leafsql: Nacos: the servers' addresses contain an @; write only host:port, and set leafNacosUsername and leafNacosPassword")
	}
	for _, a := range strings.Split(address, ",") {
		server, err := parseServer(strings.TrimSpace(a))
		if err != nil {
			return Config{}, err
		}
		server.GRPCPort = grpcPort
		c.Servers = append(c.Servers, server)
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
