package app_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lectern-dev/lectern/shared/testing/proxytest"
)

// TestEgressProxy checks that targets are reached through EGRESS_PROXY alone, with the password of a file. The network's proxy
// is not asked for a name or an address that is not public.
func TestEgressProxy(t *testing.T) {
	network := proxytest.Start(t)
	network.Require("lectern", "first")
	password := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(password, []byte("first\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	w := run(t, setup{manifests: allowAllHosts, environ: map[string]string{
		"EGRESS_PROXY": strings.Replace(network.URL, "//", "//lectern@", 1), "EGRESS_PROXY_PASSWORD_FILE": password,
	}})
	for _, host := range []string{"127.0.0.1", "[::1]", "[::ffff:10.0.0.1]", "169.254.169.254", "localhost", "a.localhost", "localhost.", "intranet", "metadata.google.internal", "kubernetes.default.svc.cluster.local", "2130706433", "127.1", "0x7f.1"} {
		for _, target := range []string{"https://" + host + ":" + w.target.port + "/", "http://" + host + ":" + w.plain.port + "/"} {
			if got := w.do(call{target: target}); got.code() != "destination_not_allowed" && got.code() != "invalid_target" {
				t.Errorf("%s: %d %s", target, got.StatusCode, got.body)
			}
		}
	}
	if s := w.do(call{target: w.url("/x")}).seen(t); s.Host != "api.lectern.test:"+w.target.port {
		t.Errorf("the target saw the host %s", s.Host)
	}
	if want := "CONNECT api.lectern.test:" + w.target.port; network.Asked() != want || w.names.asked.Load() != 0 {
		t.Errorf("%s, and %d lookups", network.Asked(), w.names.asked.Load())
	}
	network.Require("lectern", "second")
	got := w.do(call{target: "https://other.test:" + w.target.port + "/"})
	if got.code() != "upstream_unreachable" || !strings.Contains(w.log.String(), "EGRESS_PROXY answered with status 407") {
		t.Errorf("%d %s\n%s", got.StatusCode, got.body, w.log)
	}
}
