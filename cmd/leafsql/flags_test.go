//go:build unix

package main

import (
	"strings"
	"testing"
)

func TestBadInputIsRefused(t *testing.T) {
	for _, tt := range []struct{ args, want string }{
		{"nosuch", "leafsql help"},
		{"check", "no -dsn; give the application's DSN"},
		{"proxy", "no -dsn; give the DSN of leafsql's own account"},
		{"check -nosuch", "-h lists the flags"},
		{"check -dsn x/y orders", "takes only flags"},
		{"check root:secret@tcp(127.0.0.1:1)/shop", "-dsn"},
		{"serve root:secret@tcp(127.0.0.1:1)/shop", "-dsn"},
		{"check -dsn root:secret@shop", "write user:password@"},
		{"check -dsn env:LEAFSQL_NOT_SET", "LEAFSQL_NOT_SET is not set"},
		{"check -dsn root:secret@tcp(127.0.0.1:1)/shop?leafTables=orders", "cannot connect to 127.0.0.1:1/shop"},
		{"check -dsn root:secret@tcp(127.0.0.1:1)/shop?leafNoSuch=1", "leafNoSuch"},
	} {
		status, out, errs := runLeafsql(t.Context(), strings.Fields(tt.args)...)
		if status != exitFailure || !strings.Contains(errs, tt.want) || strings.Contains(errs+out, "secret") || !strings.HasPrefix(errs, "leafsql: ") {
			t.Errorf("leafsql %s: status %d, error %q, output %q, want %d and an error with %q", tt.args, status, errs, out, exitFailure, tt.want)
		}
	}
	if out := mustRun(t, exitOK, "help"); !strings.Contains(out, "check") {
		t.Errorf("help = %s\nwant the subcommands and flags", out)
	}
	if out := mustRun(t, exitOK, "check", "-h"); !strings.Contains(out, "-shard") {
		t.Errorf("help = %s\nwant the subcommands and flags", out)
	}
}
