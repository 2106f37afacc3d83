package wire

import (
	"net/netip"
	"strings"
	"testing"
)

// Headers that HAProxy 2.6 sent, and others that the description of the protocol allows.
const (
	v2TCP4    = binaryHeader + "\x21\x11\x00\x0c\x7f\x00\x00\x09\x7f\x00\x00\x01\xa1\x2c\x0c\xeb"
	v2TCP6    = binaryHeader + "\x21\x21\x00\x24" + v6 + v6 + "\xa1\x2c\x0c\xeb"
	v2Local   = binaryHeader + "\x20\x00\x00\x00"
	v6        = "\x20\x01\x0d\xb8\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x07"
	v2TLV     = binaryHeader + "\x21\x11\x00\x0f\x7f\x00\x00\x09\x7f\x00\x00\x01\xa1\x2c\x0c\xeb\x04\x00\x00"
	v2Mapped  = binaryHeader + "\x21\x21\x00\x24\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\xff\xff\x7f\x00\x00\x09" + v6 + "\xa1\x2c\x0c\xeb"
	v1Longest = "PROXY UNKNOWN ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff 65535 65535\r\n"
)

func TestHeaderIsReadInAnyForm(t *testing.T) {
	for header, want := range map[string]string{
		"PROXY TCP4 127.0.0.9 127.0.0.1 41260 3307\r\n":          "127.0.0.9:41260",
		"PROXY TCP6 2001:db8::7 2001:db8::1 41260 3307\r\n":      "[2001:db8::7]:41260",
		"PROXY TCP6 ::ffff:127.0.0.9 2001:db8::1 41260 3307\r\n": "127.0.0.9:41260",
		"PROXY UNKNOWN\r\n":                   "",
		v1Longest:                             "",
		v2TCP4:                                "127.0.0.9:41260",
		v2TCP6:                                "[2001:db8::7]:41260",
		v2Mapped:                              "127.0.0.9:41260",
		v2TLV:                                 "127.0.0.9:41260",
		v2Local:                               "",
		binaryHeader + "\x20\x11\x00\x01x":    "", // LOCAL: the rest is ignored
		binaryHeader + "\x21\x00\x00\x00":     "",
		binaryHeader + "\x21\x31\x00\x04long": "",
		binaryHeader + "\x21\x00\x00\x04\x04xx\x00": "",
	} {
		for n := range header { // for a part of the header, more bytes are required
			from, need, err := ParseHeader([]byte(header[:n]))
			if err != nil || need <= n || need > len(header) || from.IsValid() {
				t.Errorf("ParseHeader() of %d bytes of %q = %v, need %d, %v; want no address and more bytes", n, header, from, need, err)
			}
		}
		from, n, err := ParseHeader([]byte(header + "\x01\x02"))
		got := ""
		if from.IsValid() {
			got = from.String()
		}
		if err != nil || n != len(header) || got != want || !HasHeaderPrefix([]byte(header)) {
			t.Errorf("ParseHeader(%q) = %q after %d bytes, %v; want %q after %d bytes", header, got, n, err, want, len(header))
		}
	}
	for _, bad := range []string{
		"GET / HTTP/1.1\r\n", "PROXX", "PROXY\r\n", "PROXY  \r\n", "PROXY TCP4\r\n", "\x00", "\r\n\r\nx",
		"PROXY TCP4 127.0.0.9 127.0.0.1 41260\r\n", "PROXY TCP4 127.0.0.9 127.0.0.1 41260 3307 1\r\n",
		"PROXY TCP4 2001:db8::7 2001:db8::1 41260 3307\r\n", "PROXY TCP6 127.0.0.9 127.0.0.1 41260 3307\r\n",
		"PROXY TCP4 127.0.0.9 127.0.0.1 70000 3307\r\n", "PROXY TCP4 127.0.0.9 127.0.0.1 -1 3307\r\n", "PROXY UDP4 127.0.0.9 127.0.0.1 1 2\r\n",
		"PROXY TCP6 fe80::1%eth0 2001:db8::1 1 2\r\n", "PROXY " + strings.Repeat("x", maxTextHeader),
		binaryHeader + "\x31\x11\x00\x0c", binaryHeader + "\x22\x11\x00\x0c", binaryHeader + "\x21\x11\xff\xff",
		binaryHeader + "\x21\x11\x00\x0b\x7f\x00\x00\x09\x7f\x00\x00\x01\xa1\x2c\x0c", binaryHeader + "\x21\x12\x00\x00", binaryHeader + "\x21\x21\x00\x0c\x7f\x00\x00\x09\x7f\x00\x00\x01\xa1\x2c\x0c\xeb",
	} {
		if from, n, err := ParseHeader([]byte(bad)); err != ErrMalformed {
			t.Errorf("ParseHeader(%q) = %v, %d, %v; want ErrMalformed", bad, from, n, err)
		}
	}
}

func TestAppendHeaderWritesVersionOne(t *testing.T) {
	for want, addrs := range map[string][2]string{
		"PROXY TCP4 127.0.0.9 127.0.0.1 41260 3307\r\n":     {"127.0.0.9:41260", "127.0.0.1:3307"},
		"PROXY TCP6 2001:db8::7 2001:db8::1 41260 3307\r\n": {"[2001:db8::7]:41260", "[2001:db8::1]:3307"},
		"PROXY TCP4 127.0.0.9 0.0.0.0 41260 3307\r\n":       {"[::ffff:127.0.0.9]:41260", "[2001:db8::1]:3307"},
		"PROXY TCP6 2001:db8::7 :: 41260 3307\r\n":          {"[2001:db8::7]:41260", "127.0.0.1:3307"},
		"PROXY TCP6 fe80::1 :: 41260 0\r\n":                 {"[fe80::1%eth0]:41260", ""},
		"PROXY UNKNOWN\r\n":                                 {"", "127.0.0.1:3307"},
	} {
		from, _ := netip.ParseAddrPort(addrs[0])
		to, _ := netip.ParseAddrPort(addrs[1])
		if got := string(AppendHeader(nil, from, to)); got != want {
			t.Errorf("AppendHeader() = %q, want %q", got, want)
		}
	}
}

// FuzzHeader: no bytes cause a panic, at most the longest header's bytes are required, and parsed addresses are
// encoded again unchanged.
func FuzzHeader(f *testing.F) {
	for _, seed := range []string{v2TCP4, v2TCP6, v2Local, v2TLV, v2Mapped, v1Longest, "PROXY TCP4 127.0.0.9 127.0.0.1 41260 3307\r\n", "PROXY TCP6 ::1 ::1 1 2\r\n", "PROXY UNKNOWN\r\n"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		from, n, err := ParseHeader(b)
		switch {
		case err != nil:
			return
		case n > len(b):
			if n > maxBinaryHeader || from.IsValid() {
				t.Errorf("ParseHeader(%q) = %v, need %d; want no address and at most %d bytes", b, from, n, maxBinaryHeader)
			}
			return
		case n < len(textHeader):
			t.Errorf("ParseHeader(%q) used %d bytes, want at least %d", b, n, len(textHeader))
		}
		written := AppendHeader(nil, from, from)
		again, m, err := ParseHeader(written)
		if err != nil || m != len(written) || again != from || len(written) > maxTextHeader {
			t.Errorf("address read again = %v after %d bytes of %q, %v; want %v", again, m, written, err, from)
		}
	})
}
