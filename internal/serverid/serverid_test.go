package serverid

import (
	"maps"
	"strings"
	"testing"
)

// TestIdentityDependsOnServerKind: a server has an identity of its own, which changes with each start if it may lose commits. A cluster has one, and
// a server that shows too little has none.
func TestIdentityDependsOnServerKind(t *testing.T) {
	alone := map[string]string{"version": "10.11.19-MariaDB", "server_id": "1", "hostname": "db0", "port": "3306", "innodb_flush_log_at_trx_commit": "1", "sync_binlog": "1", "log_bin": "ON", "binlog_format": "MIXED"}
	const galera = "/usr/lib/galera/libgalera_smm.so"
	for name, c := range map[string]struct {
		with       map[string]string
		has, lacks string // parts of the expression
		statements bool
	}{
		"MariaDB":                     {nil, "@@global.server_id", "server_uuid", false},
		"MySQL":                       {map[string]string{"server_uuid": "u"}, "@@server_uuid, ' started at '", "server_id", false},
		"MySQL in a group":            {map[string]string{"server_uuid": "u", "group_replication_group_name": "g"}, "@@group_replication_group_name", "server_uuid", false},
		"MySQL, group not configured": {map[string]string{"server_uuid": "u", "group_replication_group_name": ""}, "@@server_uuid", "group", false},
		"Galera":                      {map[string]string{"wsrep_on": "ON", "wsrep_provider": galera}, "wsrep_cluster_state_uuid", "server_id", false},
		"PXC":                         {map[string]string{"server_uuid": "u", "wsrep_on": "ON", "wsrep_provider": galera}, "performance_schema.global_status WHERE VARIABLE_NAME = 'wsrep_cluster_state_uuid'", "server_uuid", false},
		"Galera, turned off":          {map[string]string{"wsrep_on": "OFF", "wsrep_provider": galera}, "@@global.server_id", "wsrep", false},
		"Galera without a provider":   {map[string]string{"wsrep_on": "ON", "wsrep_provider": "none"}, "@@global.server_id", "wsrep", false},
		"replicates text":             {map[string]string{"binlog_format": "STATEMENT"}, "@@global.server_id", "server_uuid", true},
		"text, without a binlog":      {map[string]string{"binlog_format": "STATEMENT", "log_bin": "OFF"}, "@@global.server_id", "server_uuid", false},
		"TiDB":                        {map[string]string{"version": "8.0.11-TiDB-v8.4.0", "server_uuid": "u"}, "", "@@", false},
		"Vitess":                      {map[string]string{"version": "8.0.33-Vitess", "server_uuid": "u"}, "", "@@", false},
	} {
		values := maps.Clone(alone)
		maps.Copy(values, c.with)
		s := serverOf(values)
		if !strings.Contains(s.Identity, c.has) || strings.Contains(s.Identity, c.lacks) || (s.Identity == "") != (c.has == "") || (s.Hash == "") != (s.Identity == "" && name != "Vitess") || s.Statements != c.statements {
			t.Errorf("%s: of() = %+v, want an identity with %q and without %q, Statements %v", name, s, c.has, c.lacks, c.statements)
		}
	}
	for missing := range alone {
		values := maps.Clone(alone)
		delete(values, missing)
		if s := serverOf(values); (s.Identity == "") == (missing == "version" || missing == "binlog_format") {
			t.Errorf("without %s: of() = %+v, want an identity exactly if the server is known", missing, s)
		}
	}
}
