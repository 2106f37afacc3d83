//go:build packages

package contrib

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestUnit: systemd reads the unit without a complaint, and finds little that the service could do beside its work.
func TestUnit(t *testing.T) {
	text := string(read(t, "systemd/leafsql.service"))
	const program = "/usr/local/bin/leafsql"
	if strings.Count(text, "="+program+" ") != 1 {
		t.Fatal("it starts no " + program)
	}
	// systemd wants the program to be there.
	unit := temp(t, "leafsql.service", strings.Replace(text, "="+program+" ", "="+filepath.Join(release(t), "leafsql")+" ", 1))
	if out, err := exec.CommandContext(t.Context(), "systemd-analyze", "verify", unit).CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("%v\n%s", err, out)
	}
	report := strings.TrimSpace(run(t, "", "systemd-analyze", "security", "--offline=true", "--threshold=15", unit)) // fails above 1.5
	t.Log(report[strings.LastIndex(report, "\n")+1:])
}
