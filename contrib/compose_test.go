//go:build packages

package contrib

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/loader"
	"github.com/compose-spec/compose-go/v2/types"
	core "k8s.io/api/core/v1"
)

func compose(t *testing.T) *types.Project {
	t.Helper()
	project, err := loader.LoadWithContext(t.Context(), types.ConfigDetails{WorkingDir: "..", ConfigFiles: []types.ConfigFile{{Filename: "../docker-compose.yml"}}},
		func(o *loader.Options) { o.Profiles = []string{"*"} })
	if err != nil {
		t.Fatal(err)
	}
	return project
}

// composeSQL returns the SQL that the compose file has its MariaDB run first.
func composeSQL(t *testing.T) string { return compose(t).Configs["shop"].Content }

// TestComposeServesAndFills: the file follows the Compose Specification, and its services build stages of the Dockerfile. With its settings,
// on the database that it creates, leafsql serve issues ids and leafsql proxy fills INSERTs. TestImage runs the demo on that
// database.
func TestComposeServesAndFills(t *testing.T) {
	project := compose(t)
	docker := string(read(t, "../Dockerfile"))
	for _, service := range project.Services {
		if service.Build == nil {
			continue
		}
		if service.Build.Context != ".." || service.Build.Target != "" && !strings.Contains(docker, "\nFROM scratch AS "+service.Build.Target+"\n") {
			t.Errorf("build of service %s = %+v, want context .. and a target of the Dockerfile", service.Name, service.Build)
		}
	}
	leafsql := project.Services["leafsql"]
	if len(leafsql.Ports) != 1 || leafsql.Ports[0].HostIP != "127.0.0.1" || ":"+leafsql.Ports[0].Published != *leafsql.Environment["LEAFSQL_LISTEN"] {
		t.Errorf("ports of leafsql = %+v, want the port of LEAFSQL_LISTEN on 127.0.0.1", leafsql.Ports)
	}
	cmd := exec.CommandContext(t.Context(), filepath.Join(release(t), "leafsql"), leafsql.Command...)
	cmd.Env = os.Environ()
	for name, value := range leafsql.Environment {
		cmd.Env = append(cmd.Env, name+"="+*value)
	}
	cmd.Env = append(cmd.Env, "LEAFSQL_LISTEN=127.0.0.1:0",
		"LEAFSQL_DSN="+strings.Replace(*leafsql.Environment["LEAFSQL_DSN"], "mariadb:3306", shop(t, composeSQL(t)), 1))
	checkServe(t, cmd, "")

	service := project.Services["proxy"]
	c := core.Container{Args: service.Command}
	for i, flag := range []string{"-listen", "-metrics"} {
		if p := service.Ports[i]; p.HostIP != "127.0.0.1" || service.Command[slices.Index(service.Command, flag)+1] != ":"+p.Published || fmt.Sprint(p.Target) != p.Published {
			t.Errorf("port for %s = %+v, want the port of the flag on 127.0.0.1", flag, p)
		}
	}
	cmd = proxyCommand(t, c, "", "", "")
	server := shop(t, composeSQL(t))
	cmd.Env = append(cmd.Env, "LEAFSQL_DSN="+strings.Replace(*service.Environment["LEAFSQL_DSN"], "mariadb:3306", server, 1))
	checkProxy(t, cmd, "")
}
