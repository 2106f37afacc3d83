//go:build packages

package contrib

import (
	"bytes"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/v2/lint"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	apps "k8s.io/api/apps/v1"
	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	policy "k8s.io/api/policy/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "write kubernetes/leafsql.yaml and proxy.yaml from the chart")

const chart = "helm/leafsql"

// renderChart returns the objects that Helm makes of the chart with some values, in the order of the files'
// names.
func renderChart(t *testing.T, release string, values map[string]any) (string, error) {
	t.Helper()
	return renderChartOn(t, "v1.30.0", release, values)
}

// renderChartOn is like renderChart, for a version of Kubernetes.
func renderChartOn(t *testing.T, kubernetes, release string, values map[string]any) (string, error) {
	t.Helper()
	version, err := common.ParseKubeVersion(kubernetes)
	if err != nil {
		t.Fatal(err)
	}
	capabilities := common.DefaultCapabilities.Copy()
	capabilities.KubeVersion = *version
	chart, err := loader.Load(chart)
	if err != nil {
		t.Fatal(err)
	}
	all, err := util.ToRenderValues(chart, values, common.ReleaseOptions{Name: release, Namespace: "shop", Revision: 1, IsInstall: true}, capabilities)
	if err != nil {
		return "", err
	}
	files, err := engine.Render(chart, all)
	if err != nil {
		return "", err
	}
	var docs []string
	for _, name := range []string{"deployment", "service", "poddisruptionbudget", "servicemonitor"} {
		if doc := strings.TrimSpace(files["leafsql/templates/"+name+".yaml"]); doc != "" {
			docs = append(docs, doc+"\n")
		}
	}
	return strings.Join(docs, "---\n"), nil
}

// kinds are the objects that files here may contain, in Kubernetes' own types.
var kinds = map[string]func() any{
	"apps/v1 Deployment":                      func() any { return new(apps.Deployment) },
	"apps/v1 StatefulSet":                     func() any { return new(apps.StatefulSet) },
	"batch/v1 Job":                            func() any { return new(batch.Job) },
	"v1 Service":                              func() any { return new(core.Service) },
	"policy/v1 PodDisruptionBudget":           func() any { return new(policy.PodDisruptionBudget) },
	"monitoring.coreos.com/v1 ServiceMonitor": func() any { return new(monitoring.ServiceMonitor) },
}

// decode parses objects. Fields that their kind does not have, or has with another type, are errors.
func decode(t *testing.T, text string) (objects []any) {
	t.Helper()
	for _, doc := range strings.Split(text, "\n---\n") {
		var of meta.TypeMeta
		if err := yaml.Unmarshal([]byte(doc), &of); err != nil {
			t.Fatal(err)
		}
		kind := kinds[of.APIVersion+" "+of.Kind]
		if kind == nil {
			t.Fatalf("kind = %v, want one of the known kinds\n%s", of, doc)
		}
		object := kind()
		if err := yaml.UnmarshalStrict([]byte(doc), object); err != nil {
			t.Fatalf("%v in\n%s", err, doc)
		}
		objects = append(objects, object)
	}
	return objects
}

func onlyObject[T any](t *testing.T, objects []any) T {
	t.Helper()
	for _, o := range objects {
		if found, ok := o.(T); ok {
			return found
		}
	}
	var none T
	t.Fatalf("found no object of type %T, want one", none)
	return none
}

// checkObjects checks that objects match: selectors find the pods, ports exist, there are probes, and the pod
// has no rights.
func checkObjects(t *testing.T, objects []any, pod core.PodTemplateSpec, selector *meta.LabelSelector) {
	t.Helper()
	selects := func(s *meta.LabelSelector, of map[string]string) bool {
		found, err := meta.LabelSelectorAsSelector(s)
		return err == nil && !found.Empty() && found.Matches(labels.Set(of))
	}
	service, budget, monitor := onlyObject[*core.Service](t, objects), onlyObject[*policy.PodDisruptionBudget](t, objects), onlyObject[*monitoring.ServiceMonitor](t, objects)
	if !selects(selector, pod.Labels) || !selects(&meta.LabelSelector{MatchLabels: service.Spec.Selector}, pod.Labels) || !selects(budget.Spec.Selector, pod.Labels) || !selects(&monitor.Spec.Selector, service.Labels) {
		t.Errorf("pod labels = %v, service labels = %v, want every selector to match them", pod.Labels, service.Labels)
	}
	if (budget.Spec.MinAvailable == nil) == (budget.Spec.MaxUnavailable == nil) {
		t.Errorf("Kubernetes wants one of minAvailable and maxUnavailable in %+v", budget.Spec)
	}
	c := pod.Spec.Containers[0]
	if port := c.Ports[0].Name; c.LivenessProbe.HTTPGet.Port != intstr.FromString(port) || c.ReadinessProbe.HTTPGet.Port != intstr.FromString(port) ||
		service.Spec.Ports[0].TargetPort != intstr.FromString(port) || monitor.Spec.Endpoints[0].Port != service.Spec.Ports[0].Name {
		t.Errorf("ports of the container = %+v, of the service = %+v, want the ports that probes, service and monitor name", c.Ports, service.Spec.Ports)
	}
	checkRestricted(t, pod)
}

// checkRestricted checks that Kubernetes' profile "restricted" admits a pod, and that its files are read-only.
func checkRestricted(t *testing.T, pod core.PodTemplateSpec) {
	t.Helper()
	p, c := pod.Spec.SecurityContext, pod.Spec.Containers[0].SecurityContext
	if !*p.RunAsNonRoot || *p.RunAsUser == 0 || p.SeccompProfile.Type != core.SeccompProfileTypeRuntimeDefault || *c.AllowPrivilegeEscalation || !*c.ReadOnlyRootFilesystem ||
		!slices.Equal(c.Capabilities.Drop, []core.Capability{"ALL"}) || *pod.Spec.AutomountServiceAccountToken {
		t.Errorf("security contexts of pod and container = %+v, %+v, want a restricted pod", p, c)
	}
}

// TestChartMakesValidObjects: Helm accepts the chart, refuses unknown values, and makes objects that Kubernetes accepts and that match each
// other with all values.
func TestChartMakesValidObjects(t *testing.T) {
	for _, message := range lint.RunAll(chart, nil, "shop").Messages {
		if !strings.Contains(message.Err.Error(), "icon is recommended") {
			t.Errorf("message of the chart linter: %v, want none", message)
		}
	}
	for _, values := range []map[string]any{{"replicaCount": 3}, {"image": map[string]any{"repository": ""}}, {"drain": "10"},
		{"podDisruptionBudget": map[string]any{"minAvailable": 1, "maxUnavailable": 1}}, {"podDisruptionBudget": map[string]any{"unhealthyPodEvictionPolicy": "AlwaysAllow"}},
		{"command": "init"}, {"command": "proxy"}} {
		if text, err := renderChart(t, "leafsql", values); err == nil {
			t.Errorf("rendering with %v succeeded, want an error\n%s", values, text)
		}
	}
	if text, err := renderChartOn(t, "v1.29.9", "leafsql", map[string]any{"command": "proxy", "tls": "tls"}); err == nil {
		t.Errorf("rendering for Kubernetes 1.29 succeeded, want an error, since it has no preStop with sleep\n%s", text)
	}
	monitored := map[string]any{"enabled": true, "labels": map[string]any{"release": "prometheus"}}
	for _, values := range []map[string]any{
		{"serviceMonitor": monitored},
		{"serviceMonitor": monitored, "token": false, "replicas": 5, "drain": "60s", "args": []any{"-no-snowflakes"}, "imagePullSecrets": []any{map[string]any{"name": "pull"}},
			"podAnnotations": map[string]any{"a": "b"}, "nodeSelector": map[string]any{"disk": "ssd"}, "podDisruptionBudget": map[string]any{"minAvailable": 2},
			"tolerations": []any{map[string]any{"key": "k", "operator": "Exists"}}, "affinity": map[string]any{"podAntiAffinity": map[string]any{}}},
		{"serviceMonitor": monitored, "command": "proxy", "tls": "tls"},
		{"serviceMonitor": monitored, "command": "proxy", "args": []any{"-insecure"}, "drain": "30s", "nodeSelector": map[string]any{"disk": "ssd"}},
	} {
		text, err := renderChart(t, "leafsql", values)
		if err != nil {
			t.Fatal(err)
		}
		objects := decode(t, text)
		d := onlyObject[*apps.Deployment](t, objects)
		checkObjects(t, objects, d.Spec.Template, d.Spec.Selector)
		pod := d.Spec.Template.Spec
		drain, grace := drainTime(t, pod.Containers[0].Args), time.Duration(*pod.TerminationGracePeriodSeconds)*time.Second
		unready := time.Duration(pod.Containers[0].ReadinessProbe.PeriodSeconds*pod.Containers[0].ReadinessProbe.FailureThreshold) * time.Second
		if drain <= unready || grace < drain+25*time.Second {
			t.Errorf("drain = %v, want more than %v, the time until it is not ready, and at most %v, 25 s before it is killed", drain, unready, grace-25*time.Second)
		}
	}
}

// TestValuesAreListed: the page lists the values of the chart.
func TestValuesAreListed(t *testing.T) {
	var values map[string]any
	if err := yaml.Unmarshal(read(t, chart+"/values.yaml"), &values); err != nil {
		t.Fatal(err)
	}
	page := string(read(t, "../docs/kubernetes.md"))
	for name, value := range values {
		names := []string{name}
		if inner, ok := value.(map[string]any); ok && (name == "image" || name == "serviceMonitor") {
			names = nil
			for key := range inner {
				names = append(names, name+"."+key)
			}
		}
		for _, name := range names {
			if !regexp.MustCompile("(?m)^\\|.*`" + regexp.QuoteMeta(name) + "`.*\\|.*\\|.*\\|$").MatchString(page) {
				t.Errorf("docs/kubernetes.md has no row for the value %s, want one", name)
			}
		}
	}
}

func drainTime(t *testing.T, args []string) time.Duration {
	t.Helper()
	for _, arg := range args {
		if text, ok := strings.CutPrefix(arg, "-drain="); ok {
			d, err := time.ParseDuration(text)
			if err != nil {
				t.Fatal(err)
			}
			return d
		}
	}
	t.Fatalf("arguments = %v, want -drain", args)
	return 0
}

// manifest returns the content that a file must have: a comment, and the objects that the chart makes of a release's name
// and values.
func manifest(t *testing.T, file, what, before, release string, values map[string]any) (text string) {
	t.Helper()
	values["serviceMonitor"] = map[string]any{"enabled": true}
	text, err := renderChart(t, release, values)
	if err != nil {
		t.Fatal(err)
	}
	text = "# " + what + ", without Helm: what the chart in helm/leafsql makes. Leave the last object out without Prometheus Operator.\n" +
		"# It has no label but these: most of these read only ServiceMonitors with one that they are told, often release.\n" +
		"# Before it: " + before + "\n" + text
	if *update {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(read(t, file), []byte(text)) {
		t.Errorf("%s differs from the output of the chart, want it equal; go test -tags packages -run TestManifestsMatchTheChart . -update writes it", file)
	}
	return text
}

// TestManifestsMatchTheChart: kubernetes/leafsql.yaml contains the objects of the chart, and its command issues ids. The other files contain
// objects that Kubernetes accepts as well.
func TestManifestsMatchTheChart(t *testing.T) {
	text := manifest(t, "kubernetes/leafsql.yaml", "leafsql serve for two pods",
		"kubectl create secret generic leafsql --from-env-file=leafsql.env, with lines dsn=app:…@tcp(db:3306)/shop and token=…", "leafsql", map[string]any{})
	d := onlyObject[*apps.Deployment](t, decode(t, text))
	c := d.Spec.Template.Spec.Containers[0]
	cmd := exec.CommandContext(t.Context(), filepath.Join(release(t), "leafsql"), append(slices.Clone(c.Args), "-listen=127.0.0.1:0", "-drain=0s")...)
	cmd.Env = os.Environ()
	for _, v := range c.Env {
		cmd.Env = append(cmd.Env, v.Name+"="+map[string]string{"dsn": "app:secret@tcp(" + shop(t, allocSQL) + ")/shop", "token": "a-long-secret"}[v.ValueFrom.SecretKeyRef.Key])
	}
	checkServe(t, cmd, "a-long-secret")

	objects := decode(t, string(read(t, "kubernetes/application.yaml")))
	set := onlyObject[*apps.StatefulSet](t, objects)
	checkObjects(t, objects, set.Spec.Template, set.Spec.Selector)
	if set.Spec.ServiceName != onlyObject[*core.Service](t, objects).Name || set.Spec.VolumeClaimTemplates[0].Name != set.Spec.Template.Spec.Containers[0].VolumeMounts[0].Name {
		t.Errorf("StatefulSet with service %q and volume %q, want those of the Service and the volume mount", set.Spec.ServiceName, set.Spec.VolumeClaimTemplates[0].Name)
	}
	job := onlyObject[*batch.Job](t, decode(t, string(read(t, "kubernetes/init.yaml"))))
	checkRestricted(t, job.Spec.Template)
	in := exec.CommandContext(t.Context(), filepath.Join(release(t), "leafsql"), job.Spec.Template.Spec.Containers[0].Args...)
	in.Env = append(os.Environ(), "DSN=admin:secret@tcp("+shop(t, "CREATE DATABASE shop; CREATE TABLE shop.orders (id BIGINT PRIMARY KEY); CREATE USER admin IDENTIFIED BY 'secret'; GRANT ALL ON shop.* TO admin")+")/shop?leafTables=orders")
	if out, err := in.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
