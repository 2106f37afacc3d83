//go:build packages

package contrib

import (
	"database/sql"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"

	"github.com/leafsql/leafsql/testutil/selfsigned"
)

// In the database of the tables and in that of leaf_alloc the application's account has the rights of docs/proxy.md alone.
const proxySQL = `CREATE DATABASE leafsql;
CREATE TABLE leafsql.leaf_alloc (biz_tag varchar(128) NOT NULL PRIMARY KEY, max_id bigint NOT NULL, step int NOT NULL);
INSERT INTO leafsql.leaf_alloc VALUES ('orders', 1, 1000);
CREATE DATABASE shop;
CREATE USER app IDENTIFIED BY 'secret';
CREATE TABLE shop.orders (id BIGINT NOT NULL PRIMARY KEY, customer VARCHAR(64) NOT NULL);
CREATE USER leaf IDENTIFIED BY 'secret';
GRANT SELECT ON shop.* TO leaf;
GRANT SELECT, UPDATE ON leafsql.* TO leaf;
GRANT SELECT, INSERT ON shop.orders TO app;
`

// checkProxy starts leafsql proxy, and inserts a row through it as app. The address is in its log.
func checkProxy(t *testing.T, cmd *exec.Cmd, parameters string) {
	t.Helper()
	d, ports := startDaemon(t, cmd, "serving clients", "page and metrics")
	db, err := sql.Open("mysql", "app:secret@tcp(127.0.0.1:"+ports[0]+")/shop?timeout=1m"+parameters)
	if err != nil {
		t.Fatalf("%v\n%s", err, d.output.String())
	}
	res, err := db.Exec("INSERT INTO orders (customer) VALUES ('ann')")
	if err != nil {
		t.Fatalf("%v\n%s", err, d.output.String())
	}
	if id, err := res.LastInsertId(); id != 1 || err != nil {
		t.Errorf("LastInsertId() = %d, %v, want 1", id, err)
	}
	db.Close()
	client := http.Client{Timeout: time.Minute}
	for path, want := range map[string]string{"/healthz": "ok\n", "/readyz": "ready\n", "/metrics": `leafsql_proxy_statements_filled_total{db_name="proxy"} 1`} {
		res, err := client.Get("http://127.0.0.1:" + ports[1] + path)
		if err != nil {
			t.Fatalf("%v\n%s", err, d.output.String())
		}
		if body, err := io.ReadAll(res.Body); err != nil || res.StatusCode != 200 || !strings.Contains(string(body), want) {
			t.Errorf("GET %s = %d, %v, want 200 and a body with %q\n%s", path, res.StatusCode, err, want, body)
		}
		res.Body.Close()
	}
	d.end(t)
}

// proxyCommand returns the command that a container of leafsql proxy runs, with addresses of the test.
func proxyCommand(t *testing.T, c core.Container, server, certFile, keyFile string) *exec.Cmd {
	t.Helper()
	var args []string
	for i, arg := range c.Args {
		name, _, joined := strings.Cut(arg, "=")
		switch {
		case joined && (name == "-listen" || name == "-metrics"):
			arg = name + "=127.0.0.1:0"
		case joined && name == "-cert":
			arg = "-cert=" + certFile
		case joined && name == "-key":
			arg = "-key=" + keyFile
		case i > 0 && (c.Args[i-1] == "-listen" || c.Args[i-1] == "-metrics"):
			arg = "127.0.0.1:0"
		}
		args = append(args, arg)
	}
	cmd := exec.CommandContext(t.Context(), filepath.Join(release(t), "leafsql"), args...)
	cmd.Env = os.Environ()
	for _, v := range c.Env {
		if v.ValueFrom.SecretKeyRef.Key != "dsn" {
			t.Errorf("key of a secret in %s = %q, want dsn", c.Name, v.ValueFrom.SecretKeyRef.Key)
		}
		cmd.Env = append(cmd.Env, v.Name+"=leaf:secret@tcp("+server+")/shop?leafTables=orders&leafAllocTable=leafsql.leaf_alloc")
	}
	return cmd
}

// TestProxyManifestsMatchTheChart: kubernetes/proxy.yaml contains the objects of the chart. Its command and the sidecar fill INSERTs.
func TestProxyManifestsMatchTheChart(t *testing.T) {
	text := manifest(t, "kubernetes/proxy.yaml", "leafsql proxy for two pods",
		"kubectl create secret generic leafsql --from-env-file=leafsql.env, with a line\n"+
			"# dsn=leaf:…@tcp(db:3306)/shop?leafTables=*&leafAllocTable=leafsql.leaf_alloc, and\n"+
			"# kubectl create secret tls leafsql-proxy --cert=tls.crt --key=tls.key, for the name leafsql-proxy",
		"leafsql-proxy", map[string]any{"command": "proxy", "tls": "leafsql-proxy"})
	objects := decode(t, text)
	d := onlyObject[*apps.Deployment](t, objects)
	checkObjects(t, objects, d.Spec.Template, d.Spec.Selector)
	c := d.Spec.Template.Spec.Containers[0]
	ports := onlyObject[*core.Service](t, objects).Spec.Ports
	if i := slices.IndexFunc(ports, func(p core.ServicePort) bool { return p.Port == 3306 }); i < 0 || ports[i].TargetPort.StrVal != c.Ports[1].Name ||
		!slices.Contains(c.Args, "-listen=:3306") || c.Ports[1].ContainerPort != 3306 {
		t.Errorf("ports of the service = %+v, want port 3306 on the proxy's port 3306", ports)
	}
	if v := d.Spec.Template.Spec.Volumes; len(v) != 1 || v[0].Secret.SecretName != "leafsql-proxy" || c.VolumeMounts[0].Name != v[0].Name || !slices.Contains(c.Args, "-cert="+c.VolumeMounts[0].MountPath+"/tls.crt") {
		t.Errorf("volumes = %+v, want the secret leafsql-proxy, mounted for -cert", v)
	}
	if drain, grace, before := drainTime(t, c.Args), time.Duration(*d.Spec.Template.Spec.TerminationGracePeriodSeconds)*time.Second, time.Duration(c.Lifecycle.PreStop.Sleep.Seconds)*time.Second; before+drain+15*time.Second >= grace {
		t.Errorf("preStop = %v and -drain = %v, want a sum more than 15 s below the grace period %v", before, drain, grace)
	}
	_, certFile, keyFile := selfsigned.Files(t)
	checkProxy(t, proxyCommand(t, c, shop(t, proxySQL), certFile, keyFile), "&tls=preferred")

	app := onlyObject[*apps.Deployment](t, decode(t, string(read(t, "kubernetes/proxy-sidecar.yaml"))))
	pod := app.Spec.Template
	checkRestricted(t, pod)
	side := pod.Spec.InitContainers[0]
	if *side.RestartPolicy != core.ContainerRestartPolicyAlways {
		t.Errorf("restart policy = %s, want %s", *side.RestartPolicy, core.ContainerRestartPolicyAlways)
	}
	port := side.Args[slices.Index(side.Args, "-listen")+1]
	if env := pod.Spec.Containers[0].Env; env[0].Value+":"+env[1].Value != port {
		t.Errorf("address of the application = %v, want %s, where the proxy listens", env, port)
	}
	alone := *pod.DeepCopy()
	alone.Spec.Containers = pod.Spec.InitContainers
	checkRestricted(t, alone)
	for _, probe := range []*core.Probe{side.StartupProbe, side.LivenessProbe, side.ReadinessProbe} {
		if probe.HTTPGet.Port.StrVal != side.Ports[0].Name || !slices.Contains(side.Args, ":9307") || side.Ports[0].ContainerPort != 9307 {
			t.Errorf("probe = %+v, want the port 9307 of -metrics", probe.HTTPGet)
		}
	}
	checkProxy(t, proxyCommand(t, side, shop(t, proxySQL), "", ""), "")

	// The page shows its main lines.
	whole, page := string(read(t, "kubernetes/proxy-sidecar.yaml")), string(read(t, "../docs/proxy.md"))
	_, shown, _ := strings.Cut(page, "```yaml\n")
	shown, _, _ = strings.Cut(shown, "```")
	if lines := regexp.MustCompile("(?m)^").ReplaceAllString(strings.TrimSpace(shown), "      "); lines == "      " || !strings.Contains(whole, lines+"\n") {
		t.Errorf("docs/proxy.md has lines that the manifest lacks, want lines of it:\n%s", lines)
	}
}
