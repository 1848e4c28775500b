package cluster_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/lectern-dev/lectern/k8s/cluster"
	"github.com/lectern-dev/lectern/shared/config"
)

func TestFaults(t *testing.T) {
	for _, tt := range []struct{ name, variable, value string }{
		{"a namespace twice", "WATCH_NAMESPACES", "team-a,team-a"},
		{"no name of a namespace", "WATCH_NAMESPACES", "team-a,Team_B"},
		{"another word", "UNDECLARED_PROJECTS", "ignore"},
		{"no namespace", "PROXY_VALUES", "lectern-proxy-values"},
		{"no name", "PROXY_VALUES", "lectern/"},
		{"two slashes", "PROXY_VALUES", "lectern/proxy/values"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var cfg struct {
				Cluster cluster.Config
				Rules   cluster.Rules
				Lease   cluster.Lease
			}
			err := config.Load(&cfg, map[string]string{tt.variable: tt.value})
			faults, ok := errors.AsType[*config.Faults](err)
			if !ok || len(faults.All) != 1 || !strings.Contains(faults.Error(), tt.variable) {
				t.Errorf("Load: %v, want a fault of %s", err, tt.variable)
			}
		})
	}
}
