package main

import (
	"bytes"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestDuringShowsProgress(t *testing.T) {
	for name, tt := range map[string]struct {
		terminal bool
		want     []string
	}{
		"terminal": {true, []string{"\r   long 1 s  busy\x1b[K", "\r   long 39 s  busy\x1b[K", "\r\x1b[K"}},
		"file":     {false, []string{"   long ...\n   ... 15 s  busy\n   ... 30 s  busy\n"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var out bytes.Buffer
				s := &screen{out: &out, terminal: tt.terminal}
				if err := s.showDuring("long", func() string { return "busy" }, func() error { time.Sleep(39*time.Second + time.Millisecond); return nil }); err != nil {
					t.Fatal(err)
				}
				for _, want := range tt.want {
					if !strings.Contains(out.String(), want) {
						t.Errorf("the output lacks %q: %q", want, out.String())
					}
				}
				if !tt.terminal && strings.ContainsAny(out.String(), "\x1b\r") {
					t.Errorf("codes for a terminal in a file: %q", out.String())
				}
			})
		})
	}
}

func TestWrapBreaksAtSpaces(t *testing.T) {
	word := strings.Repeat("é", 38)
	got := strings.Join(wrap("a "+word+" "+word+" b  c "+word), "\n")
	if want := "a " + word + "\n" + word + " b c\n" + word; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
