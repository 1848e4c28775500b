package proxysource_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"

	"github.com/lectern-dev/lectern/k8s/api/v1alpha1"
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
	t.Cleanup(func() { goleak.VerifyNone(t, before) })
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

// change reads an object again, changes it and writes it.
func change[T client.Object](t testing.TB, c *cluster, o T, to func(T)) {
	t.Helper()
	if err := c.client.Get(t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
		t.Fatal(err)
	}
	to(o)
	if err := c.client.Update(t.Context(), o); err != nil {
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
// proxy, in the given namespaces, or in the whole cluster if none are given.
func (c *cluster) asProxy(t testing.TB, namespaces ...string) *rest.Config {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(generated, "rbac", "proxy.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var role rbacv1.ClusterRole
	if err := yaml.UnmarshalStrict(text, &role); err != nil {
		t.Fatal(err)
	}
	if err := c.client.Create(t.Context(), &role); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	to := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name}
	subjects := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: c.namespace, Name: "proxy"}}
	for _, namespace := range namespaces {
		c.create(t, &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "proxy"}, RoleRef: to, Subjects: subjects})
	}
	if len(namespaces) == 0 {
		c.create(t, &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: c.namespace}, RoleRef: to, Subjects: subjects})
	}
	config := rest.CopyConfig(c.env.Config)
	config.Impersonate = rest.ImpersonationConfig{
		UserName: "system:serviceaccount:" + c.namespace + ":proxy", Groups: []string{"system:serviceaccounts", "system:authenticated"},
	}
	return config
}

// long skips a test of over 20 seconds unless LECTERN_LONG is set.
func long(t testing.TB) {
	t.Helper()
	if os.Getenv("LECTERN_LONG") != "1" {
		t.Skip("takes long; LECTERN_LONG=1 runs it")
	}
}
