package worker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestOnlyRefusesUnknownOptions(t *testing.T) {
	for _, tt := range []struct {
		opts  Options
		known []string
		want  string // part of the error; "": no error
	}{
		{nil, nil, ""},
		{nil, []string{"Group"}, ""},
		{Options{"Group": ""}, []string{"Namespace", "Group"}, ""},
		{Options{"Gruop": "x"}, []string{"Namespace", "Group"}, "leafGruop: no such parameter; known are leafNamespace, leafGroup"},
		{Options{"group": "x"}, []string{"Group"}, "leafgroup: no such parameter"},
		{Options{"B": "", "A": "", "C": ""}, []string{"C"}, "leafA: no such parameter"},
		{Options{"A": "secret"}, nil, "leafA: no such parameter; this source has no parameters"},
	} {
		err := tt.opts.Only(tt.known...)
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%v.Only(%q): %v; want %q", tt.opts, tt.known, err, tt.want)
		}
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("err = %v, want no option's value in it", err)
		}
	}
}

// registered registers a source for one test.
func registered(t *testing.T, name string, parse parser) {
	t.Helper()
	Register(name, parse)
	t.Cleanup(func() { sources.Delete(name) })
}

func TestRegisterRefusesBadNames(t *testing.T) {
	nothing := func(string, Options) (func(context.Context) (Source, error), error) { return nil, nil }
	registered(t, "test-z", nothing)
	registered(t, "test-a", nothing)
	for name, register := range map[string]func(){
		"twice for test-a":                func() { Register("test-a", nothing) },
		"without a name":                  func() { Register("", nothing) },
		"without a name or a function":    func() { Register("test-b", nil) },
		"worker.Register called twice fo": func() { Register("static", nothing) },
	} {
		func() {
			defer func() {
				if p := fmt.Sprint(recover()); !strings.HasPrefix(p, "leafsql: ") || !strings.Contains(p, name) {
					t.Errorf("%q: panic %s, want prefix \"leafsql: \" and text with %q", name, p, name)
				}
			}()
			register()
		}()
	}
	if got, want := sourceNames(), []string{"env", "ordinal", "static", "test-a", "test-z"}; !slices.Equal(got, want) {
		t.Errorf("registered are %q; want %q", got, want)
	}
}

func TestLookupOpensTheSource(t *testing.T) {
	failed := errors.New("no")
	var got []any
	registered(t, "test", func(address string, opts Options) (func(context.Context) (Source, error), error) {
		return func(ctx context.Context) (Source, error) {
			got = []any{ctx.Value("key"), address, opts["A"]}
			return fixedSource(3), failed
		}, opts.Only("A")
	})
	open, err := Lookup("test(h:1)", Options{"A": "b"})
	if err != nil || got != nil {
		t.Fatalf("%v; opened with %v, want no got and no error", err, got)
	}
	//lint:ignore SA1029 the key of one test
	if _, err := open(context.WithValue(t.Context(), "key", "value")); err != failed {
		t.Errorf("the source's own error: %v, want err = %v", err, failed)
	}
	if want := []any{"value", "h:1", "b"}; !slices.Equal(got, want) {
		t.Errorf("the source was opened with %q; want %q", got, want)
	}
	if _, err = Lookup("test(h:1)", Options{"B": "secret"}); err == nil || err.Error() != "leafsql: leafTestB: no such parameter; known are leafTestA" {
		t.Errorf("an unknown option: %v, want an error and err.Error() = \"leafsql: leafTestB: no such parameter; known are leafTestA\"", err)
	}
	_, err = Lookup("etcd(h:1)", nil)
	if err == nil || !strings.HasSuffix(err.Error(), `; run go get github.com/leafsql/leafsql/idgen/worker/etcd, and import it for its side effect: import _ "github.com/leafsql/leafsql/idgen/worker/etcd"`) {
		t.Errorf("a source that is not imported: %v, want an error with suffix `; run go get github.com/leafsql/leafsql/idgen/worker/etcd, and import it for its side effect: import _ \"github.com/leafsql/leafsql/idgen/worker/etcd\"`", err)
	}
	_, err = Lookup("nacso(h:1)", nil)
	if err == nil || err.Error() != `leafsql: worker source "nacso" is unknown; registered are env, ordinal, static, test (forgotten import?)` {
		t.Errorf("an unknown name: %v, want an error and err.Error() = `leafsql: worker source \"nacso\" is unknown; registered are env, ordinal, static, test (forgotten import?)`", err)
	}
}
