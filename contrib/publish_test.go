//go:build packages

package contrib

import (
	"encoding/json"
	"encoding/pem"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
)

// TestPublishSendsWhatItRehearsed publishes this tree to a git repository, a registry and a program gh, all of which exist only in this
// test. Without their names it publishes nothing.
func TestPublishSendsWhatItRehearsed(t *testing.T) {
	const version = "v0.9.8-test"
	dir := t.TempDir()
	tree, bin, remote := filepath.Join(dir, "tree"), filepath.Join(dir, "bin"), filepath.Join(dir, "remote.git")
	run(t, "", "sh", "-ec", `cd ..; mkdir "$1"; git ls-files -z --cached --others --exclude-standard | xargs -0 cp --parents -t "$1"
		cd "$1"; git init -q -b main; git config user.name test; git config user.email test@localhost
		sed -i "0,/^## .*/s//## ${2#v} (not released yet)/" CHANGELOG.md
		git add .; git commit -q -m tree; git clone -q --bare . "$3"`, "sh", tree, version, remote)
	hosts := httptest.NewTLSServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(hosts.Close)
	images := strings.TrimPrefix(hosts.URL, "https://")
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: hosts.Certificate().Raw})
	t.Setenv("SSL_CERT_FILE", writeTemp(t, "authorities.pem", string(read(t, "/etc/ssl/certs/ca-certificates.crt"))+string(authority)))
	calls := filepath.Join(dir, "calls")
	if err := os.Mkdir(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(bin, "gh"), []byte("#!/bin/sh\nprintf '%s\\n' \"$@\" >"+calls+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	publish := func(remotes ...string) {
		t.Helper()
		t.Log(run(t, "", "make", append([]string{"-s", "-C", tree, "publish", "SITE=no", "VERSION=" + version, "PLATFORMS=" + runtime.GOOS + "/" + runtime.GOARCH}, remotes...)...))
	}
	before := run(t, "", "git", "-C", remote, "show-ref")
	publish()
	_, err := os.Stat(calls)
	if after := run(t, "", "git", "-C", remote, "show-ref"); after != before || err == nil || run(t, "", "git", "-C", tree, "tag") != "" {
		t.Errorf("a rehearsal changed the remote or the tree, or called gh, want neither")
	}
	publish("REMOTE="+remote, "REGISTRY="+images, "GITHUB=leafsql/leafsql")

	out := filepath.Join(tree, "dist", version)
	var want []string
	for _, folder := range []string{"", "cmd/leafsql/", "idgen/worker/etcd/", "idgen/worker/redis/", "idgen/worker/zookeeper/", "metrics/", "nacos/", "otelmetrics/"} {
		want = append(want, folder+version)
	}
	tags := strings.Fields(run(t, "", "git", "-C", remote, "tag"))
	for _, tag := range want {
		if !slices.Contains(tags, tag) {
			t.Errorf("tags = %v, want them to include %s", tags, tag)
		}
	}
	for _, tag := range tags {
		program := filepath.Join(out, "programs", strings.TrimSuffix(strings.TrimSuffix(tag, version), "/"))
		if tag == version {
			program = filepath.Join(out, "programs", "driver")
		}
		if _, err := os.Stat(filepath.Join(program, "program")); err != nil && !strings.HasPrefix(tag, "cmd/") {
			t.Errorf("no program was built with the module of tag %s: %v, want one", tag, err)
		}
	}
	if subject := run(t, "", "git", "-C", remote, "log", "-1", "--format=%s", "main"); subject != "release: "+version+"\n" {
		t.Errorf("last commit of main = %q, want the commit of the release", subject)
	}

	run(t, "", "sh", "-ec", `cd "$0"; sha256sum --check --quiet SHA256SUMS; mkdir unpacked; tar -xzf leafsql_*.tar.gz -C unpacked --strip-components=1`, out)
	program := filepath.Join(out, "unpacked", "leafsql")
	if got := run(t, "", program, "version"); !strings.HasPrefix(got, "leafsql "+version+", ") {
		t.Errorf("version of the archive's program = %q, want %s", got, version)
	}
	archive := filepath.Join(out, "leafsql_"+version+"_"+runtime.GOOS+"_"+runtime.GOARCH)
	var bill struct{ BomFormat string }
	if err := json.Unmarshal(read(t, archive+".cdx.json"), &bill); err != nil || bill.BomFormat != "CycloneDX" {
		t.Errorf("bill of materials has the format %q, %v, want CycloneDX", bill.BomFormat, err)
	}
	chart, err := loader.Load(filepath.Join(out, "leafsql-chart_"+version+".tgz"))
	if err != nil || chart.Validate() != nil || "v"+chart.Metadata.Version != version || "v"+chart.Metadata.AppVersion != version {
		t.Errorf("chart = %+v, %v, want a valid one of %s", chart, err, version)
	}
	called := string(read(t, calls))
	for _, argument := range []string{"release\ncreate\n" + version + "\n--repo\nleafsql/leafsql\n", archive + ".tar.gz\n", archive + ".cdx.json\n", "/leafsql-chart_" + version + ".tgz\n", "/SHA256SUMS\n"} {
		if !strings.Contains(called, argument) {
			t.Errorf("gh was called with %q, want the arguments %q", called, argument)
		}
	}

	s := newStore(t)
	image := s.buildah("from", "--platform", runtime.GOOS+"/"+runtime.GOARCH, images+"/leafsql:"+version[1:])
	if pulled := filepath.Join(s.buildah("mount", image), "leafsql"); string(read(t, pulled)) != string(read(t, program)) {
		t.Error("program in the pulled image differs from that of the archive, want the same bytes")
	}
}
