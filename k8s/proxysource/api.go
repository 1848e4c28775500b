package proxysource

import (
	"context"
	"fmt"
	"net"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/connrotation"

	"github.com/lectern-dev/lectern/k8s/api/v1alpha1"
)

// api sends requests to the API server. It needs no discovery, because the resources are known.
type api struct {
	dialer   *connrotation.Dialer
	objects  dynamic.Interface  // of the project's kinds, undecoded, so that a malformed object does not fail a list
	metadata metadata.Interface // of Secrets
	core     rest.Interface     // of Secrets with their values
}

// The watched resources.
const (
	projects    = "projects"
	credentials = "credentials"
	endpoints   = "proxyendpoints"
	secrets     = "secrets"
)

// newAPI returns an api, and opens no connection yet.
func newAPI(config *rest.Config) (*api, error) {
	config = rest.CopyConfig(config)
	config.UserAgent = "lectern-proxy"
	config.QPS = -1 // the server limits clients itself, and at most readers Secrets are read at a time
	config.WarningHandlerWithContext = rest.NoWarnings{}
	if config.Dial == nil {
		config.Dial = (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 15 * time.Second}).DialContext
	}
	a := &api{dialer: connrotation.NewDialer(config.Dial)}
	config.Dial = a.dialer.DialContext
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("reach the API server: %w", err)
	}
	if a.objects, err = dynamic.NewForConfigAndClient(config, client); err != nil {
		return nil, fmt.Errorf("reach the API server: %w", err)
	}
	if a.metadata, err = metadata.NewForConfigAndClient(metadata.ConfigFor(config), client); err != nil {
		return nil, fmt.Errorf("reach the API server: %w", err)
	}
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	core := rest.CopyConfig(config)
	core.APIPath, core.GroupVersion = "/api", &corev1.SchemeGroupVersion
	core.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	core.ContentType = runtime.ContentTypeProtobuf
	if a.core, err = rest.RESTClientForConfigAndClient(core, client); err != nil {
		return nil, fmt.Errorf("reach the API server: %w", err)
	}
	return a, nil
}

// redial ends all connections. The watches continue on other connections.
func (a *api) redial() { a.dialer.CloseAll() }

func resource(name string) schema.GroupVersionResource {
	if name == secrets {
		return corev1.SchemeGroupVersion.WithResource(name)
	}
	return v1alpha1.SchemeGroupVersion.WithResource(name)
}

// lister and watcher list and watch a resource in a namespace, or in all.
type (
	lister  func(context.Context, metav1.ListOptions) (runtime.Object, error)
	watcher func(context.Context, metav1.ListOptions) (watch.Interface, error)
)

// of returns the lister and the watcher of a resource.
func (a *api) of(name, namespace string) (lister, watcher) {
	if name == secrets {
		in := a.metadata.Resource(resource(name)).Namespace(namespace)
		return func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return in.List(ctx, o) }, in.Watch
	}
	in := a.objects.Resource(resource(name)).Namespace(namespace)
	return func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return in.List(ctx, o) }, in.Watch
}

// secret reads the current state of a Secret.
func (a *api) secret(ctx context.Context, key types.NamespacedName) (*corev1.Secret, error) {
	var s corev1.Secret
	err := a.core.Get().Namespace(key.Namespace).Resource(secrets).Name(key.Name).Do(ctx).Into(&s)
	return &s, err
}

// alive sends a small request. Its answer shows that the API server and its storage work, and accept the proxy.
func (a *api) alive(ctx context.Context, namespace string) error {
	_, err := a.objects.Resource(resource(projects)).Namespace(namespace).List(ctx, metav1.ListOptions{Limit: 1})
	return err
}
