package kubernetes_test

import (
	"context"
	"net"
	"strings"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/lectern-dev/lectern/k8s/testing/kubetest"
	"github.com/lectern-dev/lectern/shared/testing/faulttest"
)

func TestMain(m *testing.M) { kubetest.Main(m) }

// start gives t an API server and a namespace. It fails t if a goroutine outlives the test.
func start(t testing.TB) *kubetest.Cluster {
	t.Helper()
	c := kubetest.Start(t)
	before := goleak.IgnoreCurrent()
	t.Cleanup(func() {
		// The metadata client of the operator's cache leaves this goroutine when its watch is stopped.
		goleak.VerifyNone(t, before, goleak.IgnoreTopFunction("k8s.io/apimachinery/pkg/watch.(*filteredWatch).loop"))
	})
	return c
}

// way is the proxy for new connections to the API server. A test sets its faults, or stores another one.
type way = atomic.Pointer[faulttest.Proxy]

// newWay returns a way to the API server of config, and a copy of config that uses the way.
func newWay(t testing.TB, config *rest.Config) (*way, *rest.Config) {
	t.Helper()
	to := &way{}
	to.Store(newProxy(t, config))
	by := rest.CopyConfig(config)
	by.Dial = func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, to.Load().Addr())
	}
	return to, by
}

func newProxy(t testing.TB, config *rest.Config) *faulttest.Proxy {
	t.Helper()
	return faulttest.NewProxy(t, strings.Trim(strings.TrimPrefix(config.Host, "https:"), "/"))
}

// values names the Secret that the operator writes for the proxy.
func values(c *kubetest.Cluster) types.NamespacedName {
	return types.NamespacedName{Namespace: c.Namespace, Name: "lectern-proxy-values"}
}
