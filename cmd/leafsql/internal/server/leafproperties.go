package server

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"

	"github.com/go-sql-driver/mysql"
	"github.com/magiconair/properties"

	"github.com/leafsql/leafsql/driver"
)

// readLeafProperties converts Java Leaf's leaf.properties to settings: the database, and whether segments and
// snowflakes are enabled. Worker ids are then leased in Leaf's ZooKeeper. unknown contains the keys that begin with
// leaf. and that Java Leaf does not have; keys without leaf. are ignored.
func readLeafProperties(text []byte) (settings map[string]string, unknown []string, err error) {
	loader := properties.Loader{Encoding: properties.ISO_8859_1, DisableExpansion: true} // as in Java
	p, err := loader.LoadBytes(text)
	if err != nil {
		return nil, nil, err
	}
	for _, key := range p.Keys() {
		if strings.HasPrefix(key, "leaf.") && !slices.Contains(leafKeys, key) {
			unknown = append(unknown, key)
		}
	}
	get := func(key string) string { return strings.TrimSpace(p.GetString("leaf."+key, "")) }
	on := func(what string) bool { return strings.EqualFold(cmp.Or(get(what+".enable"), "true"), "true") }

	cfg := driver.NewConfig()
	if cfg.MySQL, err = parseJDBCURL(get("jdbc.url")); err != nil {
		return nil, unknown, err
	}
	cfg.MySQL.User = cmp.Or(get("jdbc.username"), cfg.MySQL.User)
	cfg.MySQL.Passwd = cmp.Or(get("jdbc.password"), cfg.MySQL.Passwd)
	if on("snowflake") {
		if servers := get("snowflake.zk.address"); servers != "" {
			cfg.Worker = "zookeeper(" + servers + ")"
			if name := get("name"); name != "" { // the name of Leaf's nodes
				cfg.WorkerOptions = map[string]string{"Name": name}
			}
		} else if get("snowflake.enable") != "" {
			return nil, unknown, errors.New("leaf.snowflake.enable without leaf.snowflake.zk.address; give the address, or a DSN with leafWorker")
		}
	}
	return map[string]string{"dsn": cfg.FormatDSN(), "no-segments": fmt.Sprint(!on("segment")), "no-snowflakes": fmt.Sprint(!on("snowflake"))}, unknown, nil
}

// leafKeys contains the keys that Java Leaf reads.
var leafKeys = []string{"leaf.name", "leaf.segment.enable", "leaf.jdbc.url", "leaf.jdbc.username", "leaf.jdbc.password",
	"leaf.snowflake.enable", "leaf.snowflake.zk.address",
	"leaf.snowflake.port", // part of the name of Leaf's node in ZooKeeper; leafsql needs none
}

// parseJDBCURL parses the URL of a database in Java's form, with its options for TLS. Other parameters do not
// affect the few statements on leaf_alloc, and are ignored.
func parseJDBCURL(address string) (*mysql.Config, error) {
	bad := errors.New("leaf.jdbc.url is not jdbc:mysql://host:port/database; write it so, or give a DSN")
	text, ok := strings.CutPrefix(address, "jdbc:")
	u, err := url.Parse(text)
	if !ok || err != nil || u.Scheme != "mysql" && u.Scheme != "mariadb" || u.Hostname() == "" || strings.ContainsAny(u.Host, ",()") || len(u.Path) < 2 {
		return nil, bad // without the address, which may contain a password
	}
	q := u.Query()
	cfg := mysql.NewConfig()
	cfg.Net, cfg.Addr = "tcp", net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), "3306"))
	cfg.DBName = u.Path[1:]
	cfg.User, cfg.Passwd = q.Get("user"), q.Get("password")
	switch mode := strings.ToUpper(strings.ReplaceAll(cmp.Or(q.Get("sslMode"), q.Get("useSSL")), "-", "_")); mode {
	case "", "PREFERRED", "TRUE":
		cfg.TLSConfig = "preferred"
	case "REQUIRED", "TRUST":
		cfg.TLSConfig = "skip-verify"
	case "VERIFY_CA", "VERIFY_IDENTITY", "VERIFY_FULL":
		cfg.TLSConfig = "true"
	case "FALSE", "DISABLED", "DISABLE":
	default:
		return nil, errors.New("leaf.jdbc.url: an unknown sslMode or useSSL; give a DSN")
	}
	return cfg, nil
}
