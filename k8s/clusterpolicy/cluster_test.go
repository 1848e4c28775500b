package clusterpolicy_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	noopmetric "go.opentelemetry.io/otel/metric/noop"
	nooptrace "go.opentelemetry.io/otel/trace/noop"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/lectern-dev/lectern/k8s/api/v1alpha1"
	credentials "github.com/lectern-dev/lectern/k8s/internal/credential"
	"github.com/lectern-dev/lectern/k8s/internal/frame"
	"github.com/lectern-dev/lectern/k8s/internal/grant"
	"github.com/lectern-dev/lectern/k8s/internal/kubetest"
	"github.com/lectern-dev/lectern/k8s/internal/secretwatch"
)

// booted is the API server of the test binary, shared by its tests.
var booted struct {
	once sync.Once
	env  *envtest.Environment
	err  error
}

func TestMain(m *testing.M) {
	// Kubernetes' libraries complain by themselves about what tests do to them.
	ctrl.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	code := m.Run()
	booted.once.Do(func() {})
	if booted.env != nil {
		if err := booted.env.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, "stop the API server:", err)
			code = max(code, 1)
		}
	}
	os.Exit(code)
}

// cluster is an API server with the project's custom resources, for one test.
type cluster struct {
	env       *envtest.Environment
	own       bool          // no other test shares it
	client    client.Client // an administrator's, without a cache
	namespace string        // the test's own
}

// newCluster gives t the API server of the test binary and a namespace. Without the server's programs the test is
// skipped, or fails if CI=true.
func newCluster(t testing.TB) *cluster {
	t.Helper()
	needAssets(t)
	booted.once.Do(func() { booted.env, booted.err = boot() })
	if booted.err != nil {
		t.Fatal(booted.err)
	}
	return view(t, booted.env, false)
}

// newOwnCluster gives t an API server of its own.
func newOwnCluster(t testing.TB) *cluster {
	t.Helper()
	needAssets(t)
	env, err := boot()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := env.Stop(); err != nil {
			t.Error(err)
		}
	})
	return view(t, env, true)
}

func needAssets(t testing.TB) {
	t.Helper()
	if os.Getenv("KUBEBUILDER_ASSETS") != "" {
		return
	}
	const missing = "KUBEBUILDER_ASSETS is not set: there is no kube-apiserver to test with (scripts/test sets it by CLUSTER_KIT)"
	if os.Getenv("CI") == "true" {
		t.Fatal(missing)
	}
	t.Skip(missing)
}

func scheme() *runtime.Scheme {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(s); err != nil {
			panic(err) // kinds are registered once
		}
	}
	return s
}

// generated returns the folder of the definitions and roles that an installation has.
var generated = filepath.Join("..", "config")

func boot() (*envtest.Environment, error) {
	env := &envtest.Environment{
		CRDDirectoryPaths: []string{filepath.Join(generated, "crd")}, ErrorIfCRDPathMissing: true, Scheme: scheme(),
		ControlPlaneStartTimeout: time.Minute, ControlPlaneStopTimeout: time.Minute,
	}
	if _, err := env.Start(); err != nil {
		return nil, fmt.Errorf("start the API server: %w", err)
	}
	return env, nil
}

func view(t testing.TB, env *envtest.Environment, own bool) *cluster {
	t.Helper()
	c := &cluster{env: env, own: own}
	config := rest.CopyConfig(env.Config)
	config.QPS = -1
	var err error
	if c.client, err = client.New(config, client.Options{Scheme: scheme()}); err != nil {
		t.Fatal(err)
	}
	c.namespace = c.newNamespace(t)
	// The server's processes and the connections to it are others' than the test's.
	before := goleak.IgnoreCurrent()
	t.Cleanup(func() {
		// The metadata client of the operator's cache leaves this goroutine when its watch is stopped.
		goleak.VerifyNone(t, before, goleak.IgnoreTopFunction("k8s.io/apimachinery/pkg/watch.(*filteredWatch).loop"))
	})
	return c
}

// newNamespace creates a namespace, whose objects are deleted at the end of the test.
func (c *cluster) newNamespace(t testing.TB) string {
	t.Helper()
	n := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}
	c.create(t, n)
	if c.own {
		return n.Name
	}
	t.Cleanup(func() {
		for _, kind := range []client.Object{&v1alpha1.Credential{}, &v1alpha1.ProxyEndpoint{}, &v1alpha1.Project{}, &corev1.Secret{}} {
			if err := c.client.DeleteAllOf(context.WithoutCancel(t.Context()), kind, client.InNamespace(n.Name)); err != nil {
				t.Error(err)
			}
		}
	})
	return n.Name
}

// create creates objects, in the test's namespace unless they name another.
func (c *cluster) create(t testing.TB, objects ...client.Object) {
	t.Helper()
	for _, o := range objects {
		if o.GetNamespace() == "" {
			o.SetNamespace(c.namespace)
		}
		if _, ok := o.(*corev1.Namespace); ok {
			o.SetNamespace("")
		}
		if err := c.client.Create(t.Context(), o); err != nil {
			t.Fatalf("create %T %s: %v", o, o.GetName(), err)
		}
	}
}

// change reads an object again, changes it and writes it. The operator may write its status at the same time.
func change[T client.Object](t testing.TB, c *cluster, o T, to func(T)) {
	t.Helper()
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		if err := c.client.Get(t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
			return err
		}
		to(o)
		return c.client.Update(t.Context(), o)
	})
	if err != nil {
		t.Fatalf("update %T %s: %v", o, o.GetName(), err)
	}
}

func (c *cluster) remove(t testing.TB, o client.Object) {
	t.Helper()
	if err := c.client.Delete(t.Context(), o); err != nil {
		t.Fatalf("delete %T %s: %v", o, o.GetName(), err)
	}
}

// asProxy returns the configuration with which the proxy reaches the API server. It has only the rights of an installed
// proxy.
func (c *cluster) asProxy(t testing.TB) *rest.Config {
	t.Helper()
	everywhere, own := kubetest.Roles(t, "proxy")
	subjects := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: c.namespace, Name: "proxy"}}
	everywhere.Name, own.Namespace = c.namespace, c.namespace
	if err := c.client.Create(t.Context(), everywhere); err != nil {
		t.Fatal(err)
	}
	c.create(t, own,
		&rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "proxy"}, Subjects: subjects,
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: own.Name},
		},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: c.namespace}, Subjects: subjects,
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: c.namespace},
		})
	config := rest.CopyConfig(c.env.Config)
	config.Impersonate = rest.ImpersonationConfig{
		UserName: "system:serviceaccount:" + c.namespace + ":proxy", Groups: []string{"system:serviceaccounts", "system:authenticated"},
	}
	return config
}

// values names the Secret that the operator writes for the proxy.
func (c *cluster) values() types.NamespacedName {
	return types.NamespacedName{Namespace: c.namespace, Name: "lectern-proxy-values"}
}

// startOperator runs the controllers of Credentials until t ends.
func (c *cluster) startOperator(t testing.TB) {
	t.Helper()
	c.create(t, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: c.values().Name}})
	several := true
	mgr, err := ctrl.NewManager(c.env.Config, ctrl.Options{
		Scheme: scheme(), Cache: frame.CacheOptions(nil), Client: frame.ClientOptions(),
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
	if err := grant.Index(t.Context(), mgr); err != nil {
		t.Fatal(err)
	}
	err = credentials.Setup(mgr, credentials.Options{
		Common: frame.Common{
			Log: log, Tracer: nooptrace.NewTracerProvider(), Meter: noopmetric.NewMeterProvider(), Now: time.Now, Workers: 4,
		},
		Secrets: secrets, Values: c.values(),
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

// long skips a test of over 20 seconds unless LECTERN_LONG is set.
func long(t testing.TB) {
	t.Helper()
	if os.Getenv("LECTERN_LONG") != "1" {
		t.Skip("takes long; LECTERN_LONG=1 runs it")
	}
}
