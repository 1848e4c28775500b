package kubernetes_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/lectern-dev/lectern/k8s/testing/kubetest"
	"github.com/lectern-dev/lectern/shared/testing/eventually"
	"github.com/lectern-dev/lectern/shared/testing/needs"
)

// While the API server is unreachable, the last policy stays in force, and the log and metrics show the outage. Changes
// of that time take effect after it.
func TestOutage(t *testing.T) {
	c := start(t)
	way, kube := newWay(t, c.As(t, "proxy"))
	p := startProxy(t, c, kube, nil)
	token := secret("stripe", canary)
	c.Create(t, token, credential("stripe", p.project, "cred_stripe"), p.third.endpoint("shop", p.project, "/a", "cred_stripe"))
	p.awaitReady(t)
	p.awaitSent(t, "/a", "cred_stripe", canary)

	way.Load().Refuse()
	eventually.True(t, "/readyz says so", func() bool { _, checks := p.ready(t); return checks["policy"] == "failing" })
	if status, checks := p.ready(t); status != http.StatusOK || checks["loaded"] != "ok" {
		t.Errorf("with the last policy in force /readyz says %d %v", status, checks)
	}
	eventually.True(t, "the metrics say so", func() bool {
		return p.metric(t, "lectern_proxy_policy_current") == 0 && p.metric(t, "lectern_proxy_policy_behind_seconds") > 0
	})
	kubetest.Change(t, c, token, func(s *corev1.Secret) { s.Data["token"] = []byte(second) })
	for range 50 {
		if _, sent, code, err := p.call("/a", "cred_stripe"); err != nil || code != "" || sent != canary {
			t.Fatalf("without the API server: %q, %v", code, err)
		}
	}
	way.Load().Heal()
	back := time.Now()
	p.awaitSent(t, "/a", "cred_stripe", second)
	t.Logf("the API server back, the change was there after %v", time.Since(back).Round(time.Millisecond))
	eventually.True(t, "all is well", func() bool {
		_, checks := p.ready(t)
		return checks["policy"] == "ok" && p.metric(t, "lectern_proxy_policy_current") == 1 && p.metric(t, "lectern_proxy_policy_behind_seconds") == 0
	})
	eventually.True(t, "the log says so", func() bool { return strings.Contains(p.log.String(), "changes in the cluster can be read again") })
	for _, said := range []string{"changes in the cluster cannot be read; the last policy stays in force", "changes in the cluster can be read again"} {
		if n := strings.Count(p.log.String(), said); n != 1 {
			t.Errorf("%q was said %d times", said, n)
		}
	}
}

// If a server vanishes without closing its connections, the proxy answers by its last policy, and finds another server
// long before TCP times out.
func TestLongVanishedServer(t *testing.T) {
	needs.Long(t)
	c := start(t)
	way, kube := newWay(t, c.As(t, "proxy"))
	p := startProxy(t, c, kube, nil)
	token := secret("stripe", canary)
	c.Create(t, token, credential("stripe", p.project, "cred_stripe"), p.third.endpoint("shop", p.project, "/a", "cred_stripe"))
	p.awaitReady(t)
	p.awaitSent(t, "/a", "cred_stripe", canary)
	way.Load().Silence() // as a server that lost its power
	way.Store(newProxy(t, kube))
	kubetest.Change(t, c, token, func(s *corev1.Secret) { s.Data["token"] = []byte(second) })
	eventually.True(t, "the change is live", func() bool {
		_, sent, code, err := p.call("/a", "cred_stripe")
		if err != nil || code != "" {
			t.Fatalf("meanwhile a call fails: %q, %v", code, err)
		}
		return sent == second
	})
	eventually.True(t, "all is well", func() bool { return p.metric(t, "lectern_proxy_policy_current") == 1 })
}
