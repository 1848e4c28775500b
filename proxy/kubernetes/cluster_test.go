package kubernetes_test

import (
	"testing"

	"go.uber.org/goleak"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lectern-dev/lectern/k8s/testing/kubetest"
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

// values names the Secret that the operator writes for the proxy.
func values(c *kubetest.Cluster) types.NamespacedName {
	return types.NamespacedName{Namespace: c.Namespace, Name: "lectern-proxy-values"}
}
