// Package kubetest gives a test a real Kubernetes API server with the project's custom resources, and helpers for tests
// of controllers. The tests of a binary share one server, which the first of them starts. Each test has namespaces of its
// own. The package needs a TestMain that calls [Main].
//
// KUBEBUILDER_ASSETS names the folder of the server's binaries. Without them, tests that need a server are skipped, or
// fail if CI=true.
//
// Production code does not import the package. A test of shared/testing/fences enforces this.
package kubetest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/lectern-dev/lectern/k8s/api/v1alpha1"
	"github.com/lectern-dev/lectern/shared/testing/eventually"
	"github.com/lectern-dev/lectern/shared/testing/pgtest"
)

// assets names the folder of kube-apiserver and etcd.
const assets = "KUBEBUILDER_ASSETS"

// shared is the server of the test binary.
type shared struct {
	once sync.Once
	env  *envtest.Environment
	err  error
}

// server is started once for the process, and stopped by [Main]: tests have no other common owner.
var server shared

// Main runs the tests of a binary, stops their server, and exits with their code. Tests may also use databases of
// pgtest.
func Main(m *testing.M) {
	// Kubernetes' libraries log the faults that tests cause.
	ctrl.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	pgtest.Main(stopping{m})
}

// stopping runs tests and stops the server.
type stopping struct{ tests *testing.M }

// Run returns the exit code.
func (s stopping) Run() int {
	code := s.tests.Run()
	server.once.Do(func() {})
	if server.env != nil {
		if err := server.env.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, "kubetest: stop the API server:", err)
			code = max(code, 1)
		}
	}
	return code
}

// Cluster is an API server, seen by one test.
type Cluster struct {
	// Client reads and writes without a cache, as a cluster's administrator.
	Client client.Client
	// Scheme knows Kubernetes' own kinds and the project's.
	Scheme *kruntime.Scheme
	// Namespace is the test's own.
	Namespace string

	config *rest.Config
}

// Start gives t the server of its test binary, which the first call starts, and a namespace of its own.
func Start(t testing.TB) *Cluster {
	t.Helper()
	needBinaries(t)
	server.once.Do(func() {
		var config string
		if config, server.err = sources(); server.err == nil {
			server.env, server.err = boot(filepath.Join(config, "crd"))
		}
	})
	if server.err != nil {
		t.Fatal(server.err)
	}
	return view(t, server.env)
}

// needBinaries skips t if the server's binaries are missing, or fails it if CI=true.
func needBinaries(t testing.TB) {
	t.Helper()
	if os.Getenv(assets) != "" {
		return
	}
	const missing = assets + " is not set: there is no kube-apiserver to test with (scripts/test sets it by CLUSTER_KIT)"
	if os.Getenv("CI") == "true" {
		t.Fatal(missing)
	}
	t.Skip(missing)
}

func view(t testing.TB, env *envtest.Environment) *Cluster {
	t.Helper()
	c := &Cluster{Scheme: Scheme(), config: env.Config}
	var err error
	if c.Client, err = client.New(c.Config(), client.Options{Scheme: c.Scheme}); err != nil {
		t.Fatal(err)
	}
	c.Namespace = c.NewNamespace(t)
	return c
}

// boot starts an API server with the custom resources that are defined in the given folders.
func boot(definitions ...string) (*envtest.Environment, error) {
	env := &envtest.Environment{
		CRDDirectoryPaths:        definitions,
		ErrorIfCRDPathMissing:    true,
		ControlPlaneStartTimeout: 5 * time.Minute, // on a busy machine
		ControlPlaneStopTimeout:  time.Minute,
		Scheme:                   Scheme(),
	}
	// From its cache, the server would answer a list only after etcd has confirmed that the cache is current.
	env.ControlPlane.GetAPIServer().Configure().Set("watch-cache", "false")
	if _, err := env.Start(); err != nil {
		return nil, fmt.Errorf("kubetest: start the API server: %w", err)
	}
	return env, nil
}

// sources returns the folder of the generated files for a cluster.
func sources() (string, error) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/lectern-dev/lectern/k8s").Output()
	if err != nil {
		return "", fmt.Errorf("kubetest: find the module's folder: %w", err)
	}
	return filepath.Join(strings.TrimSpace(string(out)), "config"), nil
}

// Scheme knows Kubernetes' own kinds and the project's.
func Scheme() *kruntime.Scheme {
	s := kruntime.NewScheme()
	for _, add := range []func(*kruntime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(s); err != nil {
			panic(err) // kinds are registered once
		}
	}
	return s
}

// Config returns a copy of the client's configuration, without a rate limit.
func (c *Cluster) Config() *rest.Config {
	config := rest.CopyConfig(c.config)
	config.QPS = -1
	return config
}

// As returns a configuration that impersonates the service account of a component in the test's namespace. The account
// has exactly the rights in config/rbac/<component>.yaml, in the given namespaces or, without any, in the whole cluster.
func (c *Cluster) As(t testing.TB, component string, namespaces ...string) *rest.Config {
	t.Helper()
	config := c.Config()
	config.Impersonate = rest.ImpersonationConfig{UserName: c.grant(t, component, namespaces)}
	return config
}

// NewNamespace creates another namespace for the test.
func (c *Cluster) NewNamespace(t testing.TB) string {
	t.Helper()
	n := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}
	c.Create(t, n)
	return n.Name
}

// Create creates objects, in the test's namespace unless they name another.
func (c *Cluster) Create(t testing.TB, objects ...client.Object) {
	t.Helper()
	for _, o := range objects {
		if _, cluster := o.(*corev1.Namespace); !cluster && o.GetNamespace() == "" {
			o.SetNamespace(c.Namespace)
		}
		if err := c.Client.Create(t.Context(), o); err != nil {
			t.Fatalf("create %T %s: %v", o, o.GetName(), err)
		}
	}
}

// Change reads an object again, changes it and writes it. It retries if another writer came first.
func Change[T client.Object](t testing.TB, c *Cluster, o T, change func(T)) {
	t.Helper()
	for {
		if err := c.Client.Get(t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
			t.Fatal(err)
		}
		change(o)
		err := c.Client.Update(t.Context(), o)
		if err == nil {
			return
		}
		if !conflict(err) {
			t.Fatalf("update %T %s: %v", o, o.GetName(), err)
		}
	}
}

// Delete deletes an object, and does not wait until it is gone.
func (c *Cluster) Delete(t testing.TB, o client.Object) {
	t.Helper()
	if err := c.Client.Delete(t.Context(), o); err != nil {
		t.Fatalf("delete %T %s: %v", o, o.GetName(), err)
	}
}

// AwaitYounger waits until new objects are younger than o: the API server keeps ages in whole
// seconds.
func AwaitYounger(t testing.TB, o client.Object) {
	t.Helper()
	eventually.True(t, "the second in which "+o.GetName()+" was made is over", func() bool {
		return time.Now().Unix() > o.GetCreationTimestamp().Unix()
	})
}

// Gone waits until an object is.
func (c *Cluster) Gone(t testing.TB, o client.Object) {
	t.Helper()
	eventually.True(t, fmt.Sprintf("%T %s is gone", o, o.GetName()), func() bool {
		err := c.Client.Get(context.WithoutCancel(t.Context()), client.ObjectKeyFromObject(o), o)
		if err != nil && client.IgnoreNotFound(err) != nil {
			t.Fatal(err)
		}
		return err != nil
	})
}
