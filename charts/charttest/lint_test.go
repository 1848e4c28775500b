package charttest

import (
	"testing"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/v2/lint"
	"helm.sh/helm/v4/pkg/chart/v2/lint/support"
	"sigs.k8s.io/yaml"
)

// TestLint checks that Helm's linter finds nothing, with default values and with all values.
func TestLint(t *testing.T) {
	for _, tt := range []struct{ name, in string }{{"no values", ""}, {"everything", everything}} {
		t.Run(tt.name, func(t *testing.T) {
			values := map[string]any{}
			if err := yaml.Unmarshal([]byte(tt.in), &values); err != nil {
				t.Fatal(err)
			}
			version := common.KubeVersion{Version: "v1.34.0", Major: "1", Minor: "34"}
			for _, m := range lint.RunAll(chartFolder, values, "lectern", lint.WithKubeVersion(&version)).Messages {
				if m.Severity >= support.WarningSev {
					t.Errorf("%s: %v", m.Path, m.Err)
				}
			}
		})
	}
}
