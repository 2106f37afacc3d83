package nacos

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"

	"github.com/leafsql/leafsql/idgen/worker"
)

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
