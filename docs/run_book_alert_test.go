package docs

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/leafsql/leafsql/testutil/promtooltest"
)

// TestRunBookAlertFires: the page's rule fires for a primary that no longer replicates semi-synchronously, or that has no
// replica.
func TestRunBookAlertFires(t *testing.T) {
	dir := t.TempDir()
	rules, tests := filepath.Join(dir, "rules.yml"), filepath.Join(dir, "tests.yml")
	var code string
	for _, b := range readPage(t, haPage).blocks {
		if b.lang == "yaml" {
			code = b.code
		}
	}
	if err := errors.Join(os.WriteFile(rules, []byte(code), 0o600), os.WriteFile(tests, []byte(alertTests), 0o600)); err != nil {
		t.Fatal(err)
	}
	promtooltest.Run(t, nil, "check", "rules", rules)
	promtooltest.Run(t, nil, "test", "rules", tests)
}

const alertTests = `rule_files: [rules.yml]
evaluation_interval: 5s
tests:
  - interval: 5s
    input_series:
      - {series: 'mysql_global_status_rpl_semi_sync_master_status{instance="fine"}', values: 1x20}
      - {series: 'mysql_global_status_rpl_semi_sync_master_clients{instance="fine"}', values: 1x20}
      - {series: 'mysql_global_variables_read_only{instance="fine"}', values: 0x20}
      - {series: 'mysql_global_status_rpl_semi_sync_master_status{instance="replica"}', values: 0x20}
      - {series: 'mysql_global_variables_read_only{instance="replica"}', values: 1x20}
      - {series: 'mysql_global_status_rpl_semi_sync_master_status{instance="off"}', values: 1x4 0x16}
      - {series: 'mysql_global_variables_read_only{instance="off"}', values: 0x20}
      - {series: 'mysql_global_status_rpl_semi_sync_master_clients{instance="alone"}', values: 1x4 0x16}
      - {series: 'mysql_global_variables_read_only{instance="alone"}', values: 0x20}
      - {series: 'mysql_global_status_rpl_semi_sync_source_status{instance="off8"}', values: 1x4 0x16}
      - {series: 'mysql_global_variables_read_only{instance="off8"}', values: 0x20}
      - {series: 'mysql_global_status_rpl_semi_sync_source_clients{instance="alone8"}', values: 1x4 0x16}
      - {series: 'mysql_global_variables_read_only{instance="alone8"}', values: 0x20}
    promql_expr_test:
      - expr: count by (instance) (ALERTS{alertname="SemiSyncOff", alertstate="firing"})
        eval_time: 15s
      - expr: count by (instance) (ALERTS{alertname="SemiSyncOff", alertstate="firing"})
        eval_time: 60s
        exp_samples:
          - {labels: '{instance="off"}', value: 1}
          - {labels: '{instance="alone"}', value: 1}
          - {labels: '{instance="off8"}', value: 1}
          - {labels: '{instance="alone8"}', value: 1}
`
