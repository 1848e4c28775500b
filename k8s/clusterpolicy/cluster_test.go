package clusterpolicy_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	noopmetric "go.opentelemetry.io/otel/metric/noop"
	nooptrace "go.opentelemetry.io/otel/trace/noop"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/lectern-dev/lectern/k8s/internal/controller"
	credentials "github.com/lectern-dev/lectern/k8s/internal/credential"
	"github.com/lectern-dev/lectern/k8s/internal/ownership"
	"github.com/lectern-dev/lectern/k8s/internal/secretwatch"
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

// startOperator runs the controllers of Credentials until t ends.
func startOperator(t testing.TB, c *kubetest.Cluster) {
	t.Helper()
	c.Create(t, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: values(c).Name}})
	several := true
	mgr, err := ctrl.NewManager(c.Config(), ctrl.Options{
		Scheme: c.Scheme, Cache: controller.CacheOptions(nil), Client: controller.ClientOptions(),
		Metrics: metricsserver.Options{BindAddress: "0"}, Controller: ctrlconfig.Controller{SkipNameValidation: &several},
	})
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	secrets, err := secretwatch.New(mgr, nil, log, noopmetric.NewMeterProvider())
	if err != nil {
		t.Fatal(err)
	}
	if err := mgr.Add(secrets); err != nil {
		t.Fatal(err)
	}
	if err := ownership.Index(t.Context(), mgr); err != nil {
		t.Fatal(err)
	}
	err = credentials.Setup(mgr, credentials.Options{
		Common: controller.Common{
			Log: log, Tracer: nooptrace.NewTracerProvider(), Meter: noopmetric.NewMeterProvider(), Now: time.Now, Workers: 4,
		},
		Secrets: secrets, Values: values(c),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("the controllers ended with %v", err)
		}
	})
}
