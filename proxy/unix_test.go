package proxy_test

import (
	"crypto/tls"
	"os/user"
	"strings"
	"testing"

	"github.com/leafsql/leafsql/proxy"
	"github.com/leafsql/leafsql/proxy/proxytest"
	"github.com/leafsql/leafsql/testutil/mysqltest"
	"github.com/leafsql/leafsql/testutil/selfsigned"
)

// TestClientsLogInThroughUnixSocket: clients log in through the server's unix socket with their passwords. No client is mistaken
// for the proxy's operating system user, by the name of an account or by a name that is mapped to an account.
func TestClientsLogInThroughUnixSocket(t *testing.T) {
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	for _, target := range mysqltest.Targets(t) {
		t.Run(target.Name, func(t *testing.T) {
			cert, certFile, keyFile := selfsigned.Files(t)
			maria := target.Name == string(mysqltest.MariaDB)
			args, via := []string{"--ssl-cert=" + certFile, "--ssl-key=" + keyFile}, "VIA unix_socket"
			if !maria {
				args, via = append(args, "--plugin-load-add=auth_socket.so"), "WITH auth_socket"
			}
			p := newTestDatabase(t, mysqltest.Run(t, mysqltest.Config{Kind: mysqltest.Kind(target.Name), Args: args}).Target())
			const named = "mapped"
			p.exec("CREATE USER IF NOT EXISTS `"+me.Username+"`@localhost", "ALTER USER `"+me.Username+"`@localhost IDENTIFIED "+via,
				"CREATE USER "+named+"@localhost IDENTIFIED "+via+" AS '"+me.Username+"'", "GRANT ALL ON *.* TO "+named+"@localhost",
				"CREATE USER app@localhost IDENTIFIED BY 'secret'", "GRANT ALL ON "+p.name+".* TO app@localhost", "CREATE USER own IDENTIFIED BY 'secret'", "GRANT ALL ON *.* TO own")
			socket := p.queryValue("SELECT @@socket")
			dsn := strings.Replace(p.dsn, "root@", "own:secret@", 1)
			addr := proxytest.Start(t, dsn+"?leafTables=none", func(cfg *proxy.Config) {
				cfg.Server, cfg.TLS = socket, &tls.Config{Certificates: cert.Client().Certificates}
			})
			client := cert.Client()
			client.ServerName = "127.0.0.1"
			o := proxytest.Options{User: "app", Password: "secret", Database: p.name, TLS: client}
			if !maria {
				o.Plugin = "caching_sha2_password"
			}
			p.exec("FLUSH PRIVILEGES") // MySQL has not cached the password
			c := p.dial(addr, o)
			if rows := c.Query("SELECT CURRENT_USER()").Rows(); len(rows) != 1 || rows[0][0] != "app@localhost" {
				t.Errorf("CURRENT_USER() = %v, want app@localhost", rows)
			}
			for _, name := range []string{me.Username, named} {
				for _, password := range []string{"", "wrong"} {
					as := o
					as.User, as.Password, as.Database = name, password, ""
					if in, err := proxytest.Dial(addr, as); err == nil {
						t.Errorf("login of %s with the password %q succeeded as %v, want an error", name, password, in.Query("SELECT CURRENT_USER()").Rows())
					} else if number, text := in.Answers[0].Err(); number != 1045 && number != 1698 {
						t.Errorf("%s with the password %q: error %d %s, %v, want 1045", name, password, number, text, err)
					}
				}
				again := p.dial(addr, o)
				if number, text := again.ChangeUser(name, "", "").Err(); number == 0 {
					t.Errorf("change of the user to %s succeeded as %v, want an error", name, again.Query("SELECT CURRENT_USER()").Rows())
				} else if a := again.Query("SELECT CURRENT_USER()"); len(a.Rows()) > 0 && strings.HasPrefix(a.Rows()[0][0], name) {
					t.Errorf("after error %d %s: CURRENT_USER() = %v, want another one than %s", number, text, a.Rows(), name)
				}
			}
			o.TLS = nil
			p.exec("FLUSH PRIVILEGES")
			plain, err := proxytest.Dial(addr, o)
			if number, text := plain.Answers[0].Err(); maria && err != nil || !maria && (number != 3159 || !strings.Contains(text, "unix socket")) {
				t.Errorf("login without TLS: error %d %s (%v), want none on MariaDB, and 3159 for the unix socket on MySQL", number, text, err)
			}
		})
	}
}
