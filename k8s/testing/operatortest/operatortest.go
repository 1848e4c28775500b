// Package operatortest runs a part of the operator for the tests of the programs that depend on it. A test chooses the part,
// so it may itself write what the other controllers would write.
package operatortest

import (
	"context"
	"log/slog"
	"testing"
	"time"

	noopmetric "go.opentelemetry.io/otel/metric/noop"
	nooptrace "go.opentelemetry.io/otel/trace/noop"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/lectern-dev/lectern/k8s/cluster"
	"github.com/lectern-dev/lectern/k8s/internal/controller"
	"github.com/lectern-dev/lectern/k8s/internal/credential"
	"github.com/lectern-dev/lectern/k8s/internal/metawatch"
	"github.com/lectern-dev/lectern/k8s/internal/ownership"
	"github.com/lectern-dev/lectern/k8s/testing/kubetest"
)

// StartCredentials creates the Secret that values names, in c's namespace. Until t ends, it runs the controllers of
// Credentials, which write the values of all Credentials of the cluster to the Secret.
func StartCredentials(t testing.TB, c *kubetest.Cluster, values types.NamespacedName) {
	t.Helper()
	c.Create(t, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: values.Name}})
	var all cluster.Config // every namespace
	several := true
	mgr, err := ctrl.NewManager(c.Config(), ctrl.Options{
		Scheme: c.Scheme, Cache: controller.CacheOptions(all), Client: controller.ClientOptions(),
		Metrics: metricsserver.Options{BindAddress: "0"}, Controller: ctrlconfig.Controller{SkipNameValidation: &several},
	})
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	secrets, err := metawatch.New(mgr, "Secret", all.Namespaces(), log)
	if err != nil {
		t.Fatal(err)
	}
	if err := mgr.Add(secrets); err != nil {
		t.Fatal(err)
	}
	if err := ownership.Index(t.Context(), mgr); err != nil {
		t.Fatal(err)
	}
	err = credential.Setup(mgr, credential.Options{
		Common: controller.Common{
			Log: log, Tracer: nooptrace.NewTracerProvider(), Meter: noopmetric.NewMeterProvider(), Now: time.Now, Workers: 4,
		},
		Secrets: secrets, Values: values,
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
