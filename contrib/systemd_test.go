//go:build packages

package contrib

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// TestUnitsAreValidAndConfined: systemd reads the units without a warning, and rates the services as well confined.
func TestUnitsAreValidAndConfined(t *testing.T) {
	for _, name := range []string{"leafsql.service", "leafsql-proxy.service"} {
		t.Run(name, func(t *testing.T) { verifyUnit(t, name) })
	}
}

func verifyUnit(t *testing.T, name string) {
	text := string(read(t, "systemd/"+name))
	const program = "/usr/local/bin/leafsql"
	if strings.Count(text, "="+program+" ") != 1 {
		t.Fatalf("unit = %s\nwant one start of %s", text, program)
	}
	// systemd requires the program.
	unit := writeTemp(t, name, strings.Replace(text, "="+program+" ", "="+filepath.Join(release(t), "leafsql")+" ", 1))
	if out, err := exec.CommandContext(t.Context(), "systemd-analyze", "verify", unit).CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("systemd-analyze verify: %v, want no error and no output\n%s", err, out)
	}
	report := strings.TrimSpace(run(t, "", "systemd-analyze", "security", "--offline=true", "--threshold=15", unit)) // fails above 1.5
	t.Log(report[strings.LastIndex(report, "\n")+1:])
}

// TestProxyUnitFillsInserts: the page shows the settings that the unit names. With these the unit's command fills INSERTs.
func TestProxyUnitFillsInserts(t *testing.T) {
	text, page := string(read(t, "systemd/leafsql-proxy.service")), string(read(t, "../docs/proxy.md"))
	_, shown, _ := strings.Cut(page, "```ini\n")
	shown, _, _ = strings.Cut(shown, "```")
	if lines := regexp.MustCompile("(?m)^").ReplaceAllString(strings.TrimSpace(shown), "#   "); lines == "#   " || !strings.Contains(text, lines+"\n") {
		t.Errorf("docs/proxy.md has lines that the unit lacks, want lines of it:\n%s", lines)
	}
	settings := map[string]string{}
	for line := range strings.Lines(strings.NewReplacer("127.0.0.1:3306", shop(t, proxySQL), ":3307", ":0", ":9307", ":0").Replace(shown)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		settings[name] = value
	}
	start := regexp.MustCompile(`(?m)^ExecStart=\S+ (.*) \$LEAFSQL_PROXY$`).FindStringSubmatch(text)
	if start == nil {
		t.Fatalf("the unit has no ExecStart that ends in $LEAFSQL_PROXY, want one\n%s", text)
	}
	cmd := exec.Command(filepath.Join(release(t), "leafsql"), append(strings.Fields(start[1]), strings.Fields(settings["LEAFSQL_PROXY"])...)...)
	cmd.Env = append(os.Environ(), "LEAFSQL_DSN="+settings["LEAFSQL_DSN"])
	checkProxy(t, cmd, "")

	stop := regexp.MustCompile(`(?m)^TimeoutStopSec=(\d+)$`).FindStringSubmatch(text)
	drain := regexp.MustCompile(`-drain (\S+)`).FindStringSubmatch(start[1])
	if stop == nil || drain == nil {
		t.Fatalf("TimeoutStopSec = %q, -drain = %q, want both in the unit", stop, drain)
	}
	kill, err := time.ParseDuration(stop[1] + "s")
	if err != nil {
		t.Fatal(err)
	}
	if drains, err := time.ParseDuration(drain[1]); err != nil || kill <= drains+15*time.Second {
		t.Errorf("-drain = %v, %v, want more than 15 s below TimeoutStopSec %v", drains, err, kill)
	}
}
