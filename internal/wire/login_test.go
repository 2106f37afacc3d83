package wire

import (
	"bytes"
	"reflect"
	"testing"
)

// Packets that servers and clients sent.
const (
	mariaGreeting = "\n5.5.5-10.11.19-MariaDB-0+deb12u1\x00\xef\x03\x00\x00x#>Q[W\"A\x00\xfe\xf7-\x02\x00\xff\x81\x15\x00\x00\x00\x00\x00\x00\x1d\x00\x00\x00`Ckprj>65D8+\x00mysql_native_password\x00"
	mysqlGreeting = "\n9.7.4-2\x00\xa8\x02\x00\x00\x01a\\=N\x15~]\x00\xff\xff\xff\x02\x00\xff\xdf\x15\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01\vg\tb#6\x0ff|!x\x00caching_sha2_password\x00"

	mariaLogin = "\x84\xa2\xbf\x00\x00\x00\x10\x00!\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x1d\x00\x00\x00root\x00\x00mysql_native_password\x00~\x03_os\x05Linux\f_client_name\nlibmariadb\x04_pid\x047575\x0f_client_version\x063.3.20\t_platform\x06x86_64\fprogram_name\x05mysql\f_server_host\t127.0.0.1"
	phpLogin   = "\x8d\xa2\x1a\x00\x00\x00\x00\xc0\xff\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00root\x00\x00shop\x00caching_sha2_password\x00,\f_client_name\amysqlnd\f_server_host\t127.0.0.1"
	phpChange  = "\x11root\x00\x00shop\x00-\x00mysql_native_password\x00,\f_client_name\amysqlnd\f_server_host\t127.0.0.1"
)

func TestGreetingChangesOnlyCapabilities(t *testing.T) {
	for _, tt := range []struct {
		name, payload, version string
		caps, maria            uint32
	}{
		{"MariaDB", mariaGreeting, "5.5.5-10.11.19-MariaDB-0+deb12u1", 0x81fff7fe, MariaBulk | MariaExtendedMeta | 1<<0 | 1<<4},
		{"MySQL", mysqlGreeting, "9.7.4-2", 0xdfffffff, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			payload := []byte(tt.payload)
			g, err := ParseGreeting(payload)
			if err != nil || g.Version != tt.version || g.Caps != tt.caps || g.MariaCaps != tt.maria {
				t.Fatalf("ParseGreeting(): version %q, capabilities %#x and %#x, error %v; want %q, %#x and %#x", g.Version, g.Caps, g.MariaCaps, err, tt.version, tt.caps, tt.maria)
			}
			caps, maria := g.Caps&^(Compress|SSL|QueryAttrs), g.MariaCaps&MariaExtendedMeta
			g.SetCaps(caps, maria)
			again, err := ParseGreeting(payload)
			if err != nil || again.Caps != caps || again.MariaCaps != maria || again.Version != tt.version {
				t.Errorf("greeting read again: capabilities %#x and %#x, error %v; want %#x and %#x", again.Caps, again.MariaCaps, err, caps, maria)
			}
			again.SetCaps(tt.caps, tt.maria)
			if string(payload) != tt.payload {
				t.Errorf("greeting with its first capabilities:\ngot %q\nwant %q", payload, tt.payload)
			}
			for n := range len(tt.version) + 33 { // the fixed part
				if _, err := ParseGreeting(payload[:n]); err == nil && n < len(tt.version)+33 {
					t.Errorf("ParseGreeting() of %d bytes: no error, want one", n)
				}
			}
		})
	}
}

func TestLoginIsRead(t *testing.T) {
	const maria = 0x00bfa284
	for _, tt := range []struct {
		name, payload string
		want          Login
	}{
		{"MariaDB's library", mariaLogin, Login{Caps: maria, MariaCaps: 0x1d, User: "root"}},
		{"PHP", phpLogin, Login{Caps: 0x001aa28d, User: "root", Database: "shop"}},
		{"before TLS", "\x05\xae\xbf\x00\x00\x00\x10\x00!" + string(make([]byte, 23)), Login{Caps: 0x00bfae05}},
		{"the old form", "\x05\x00\x00\x00\x01root\x00secret", Login{Caps: 5}},
		{"a short password", "\x00\x82\x00\x00" + string(make([]byte, 28)) + "u\x00\x03abc", Login{Caps: Protocol41 | SecureConn, User: "u"}},
		{"a password with an end", "\x08\x02\x00\x00" + string(make([]byte, 28)) + "u\x00abc\x00db\x00", Login{Caps: Protocol41 | ConnectWithDB, User: "u", Database: "db"}},
		{"nothing behind the password", "\x08\x82\x00\x00" + string(make([]byte, 28)) + "u\x00\x00", Login{Caps: Protocol41 | SecureConn | ConnectWithDB, User: "u"}},
	} {
		got, err := ParseLogin([]byte(tt.payload))
		if err != nil || got != tt.want {
			t.Errorf("%s: %+v, %v; want %+v", tt.name, got, err, tt.want)
		}
	}
	for name, payload := range map[string]string{
		"empty":                           "",
		"no end of the name":              "\x00\x82\x00\x00" + string(make([]byte, 28)) + "user",
		"a password of 20 bytes, 3 there": "\x00\x82\x00\x00" + string(make([]byte, 28)) + "u\x00\x14abc",
		"a password of 2^64-1 bytes":      "\x00\x82\x20\x00" + string(make([]byte, 28)) + "u\x00\xfe\xff\xff\xff\xff\xff\xff\xff\xff",
		"a password that is NULL":         "\x00\x82\x20\x00" + string(make([]byte, 28)) + "u\x00\xfb",
		"no end of the database":          "\x08\x82\x00\x00" + string(make([]byte, 28)) + "u\x00\x00db",
	} {
		if l, err := ParseLogin([]byte(payload)); err == nil {
			t.Errorf("%s: ParseLogin() = %+v, want an error", name, l)
		}
	}
}

func TestChangeUserIsRead(t *testing.T) {
	for _, tt := range []struct {
		name, payload  string
		caps           uint32
		user, database string
	}{
		{"PHP", phpChange, 0x001aa28d, "root", "shop"},
		{"no database", "\x11u\x00\x00\x00-\x00", SecureConn, "u", ""},
		{"a database without an end", "\x11u\x00\x02abshop", SecureConn, "u", "shop"},
		{"a password with an end", "\x11u\x00ab\x00shop\x00", 0, "u", "shop"},
	} {
		user, database, err := ParseChangeUser([]byte(tt.payload), tt.caps)
		if err != nil || user != tt.user || database != tt.database {
			t.Errorf("%s: ParseChangeUser() = %q, %q, %v; want %q, %q", tt.name, user, database, err, tt.user, tt.database)
		}
	}
	for _, payload := range []string{"", "\x11", "\x11u", "\x11u\x00", "\x11u\x00\x14abc"} {
		if user, database, err := ParseChangeUser([]byte(payload), SecureConn); err == nil {
			t.Errorf("ParseChangeUser(%q) = %q, %q; want an error", payload, user, database)
		}
	}
}

// FuzzLogins: no bytes of a server or of a client before its login cause a panic. Capabilities that are written
// into a greeting are read back, and its other bytes do not change.
func FuzzLogins(f *testing.F) {
	for _, seed := range []string{mariaGreeting, mysqlGreeting, mariaLogin, phpLogin, phpChange} {
		f.Add([]byte(seed), uint32(0xffffffff), uint32(0x3f))
	}
	f.Fuzz(func(t *testing.T, p []byte, caps, maria uint32) {
		kept := bytes.Clone(p)
		var l Login
		var g Greeting
		var err error
		took := allocated(func() {
			if l, err = ParseLogin(p); err == nil && len(l.User)+len(l.Database) > len(p) {
				t.Errorf("ParseLogin() = %+v, want names within the packet of %d bytes", l, len(p))
			}
			ParseChangeUser(p, caps)
			g, err = ParseGreeting(p)
		})
		if took > uint64(256<<10+10*len(p)) {
			t.Errorf("%d bytes were allocated for a packet of %d, want at most %d", took, len(p), 256<<10+10*len(p))
		}
		if !bytes.Equal(p, kept) {
			t.Fatalf("packet after reading = %q, want %q", p, kept)
		}
		if err != nil {
			return
		}
		if caps&LongPassword != 0 {
			maria = 0
		}
		before := g
		g.SetCaps(caps, maria)
		again, err := ParseGreeting(p)
		if err != nil || again.Caps != caps || again.MariaCaps != maria || again.Version != g.Version {
			t.Errorf("greeting with capabilities %#x, %#x read again = %+v, %v; want the same", caps, maria, again, err)
		}
		if before.Caps&LongPassword == 0 && caps&LongPassword == 0 || before.Caps&caps&LongPassword != 0 {
			again.SetCaps(before.Caps, before.MariaCaps)
			if !reflect.DeepEqual(p, kept) {
				t.Errorf("packet with its first capabilities = %q, want %q", p, kept)
			}
		}
	})
}
