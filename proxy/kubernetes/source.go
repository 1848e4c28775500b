package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lectern-dev/lectern/k8s/api/v1alpha1"
	"github.com/lectern-dev/lectern/k8s/cluster"
	"github.com/lectern-dev/lectern/proxy/app"
	"github.com/lectern-dev/lectern/proxy/policy"
)

const (
	// gather is the delay after a change, so that changes that are applied together make one policy.
	gather = 10 * time.Millisecond
	// After a build, the next build waits for idleFor times the duration of the build, but at most idleAtMost. So quick
	// builds for a cluster with many changes take about a fifth of one processor.
	idleFor    = 4
	idleAtMost = 300 * time.Millisecond

	// Interval and timeout of the probe of the API server.
	probeEvery  = 5 * time.Second
	probeWithin = 3 * time.Second

	// rememberRefusal is how long the policy counts as out of date after the API server has refused a watch. The client
	// library tries again at least once a minute.
	rememberRefusal = 2 * time.Minute
)

// kinds are the kinds of the objects that the proxy watches and from which it makes a policy.
var kinds = [...]string{"Project", "Credential", "ProxyEndpoint"}

// Source keeps a policy.Store up to date with a cluster. It implements app.Gradual.
type Source struct {
	store  *policy.Store
	cache  cache.Cache
	api    client.Client // without a cache
	values types.NamespacedName
	probed string // the namespace that the probe asks for; "" for all

	requireProject bool // objects of a project that no Project declares are refused

	changes chan struct{} // objects have changed
	news    chan struct{} // the result of trouble has changed

	mu          sync.Mutex
	unreachable error // of the last probe
	refused     error // of the last watch that failed
	refusedAt   time.Time
	noValues    error // why the values of Credentials are not known

	filled atomic.Bool // the cache has all objects
	loaded atomic.Bool
	tally  atomic.Pointer[tally]
	report *report

	rested time.Time // when the next policy may be made
}

// The markers name all requests that the proxy sends to the API server, and the role lectern-proxy is generated from the markers.
// Projects decide which namespaces may have Credentials and ProxyEndpoints.
// +kubebuilder:rbac:groups=lectern.dev,resources=credentials;projects;proxyendpoints,verbs=list;watch
// +kubebuilder:rbac:groups="",namespace=lectern,resources=secrets,resourceNames=lectern-proxy-values,verbs=list;watch

// New returns a Source for the namespaces in settings and the API server in config. The Source sends its first request
// in [Source.Run].
func New(config *rest.Config, settings cluster.Config, rules cluster.Rules, o app.SourceOptions) (*Source, error) {
	config = rest.CopyConfig(config)
	config.WarningHandlerWithContext = rest.NoWarnings{}
	s := &Source{
		store: o.Store, values: rules.ValuesName(), changes: make(chan struct{}, 1), news: make(chan struct{}, 1),
		probed:         settings.Namespaces()[0], // the proxy may have rights only in the watched namespaces
		requireProject: !rules.AllowUndeclared(),
	}
	s.tally.Store(&tally{})
	var err error
	if s.report, err = newReport(o.Log, o.Meter, s); err != nil {
		return nil, err
	}
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	// The resources are known, so no discovery is needed. As with discovery, lists are kinds of their own.
	mapper := meta.NewDefaultRESTMapper(nil)
	for _, kind := range kinds {
		mapper.Add(v1alpha1.SchemeGroupVersion.WithKind(kind), meta.RESTScopeNamespace)
		mapper.Add(v1alpha1.SchemeGroupVersion.WithKind(kind+"List"), meta.RESTScopeNamespace)
	}
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Secret"), meta.RESTScopeNamespace)
	if s.api, err = client.New(config, client.Options{Scheme: scheme, Mapper: mapper}); err != nil {
		return nil, fmt.Errorf("reach the API server: %w", err)
	}
	watched := cache.Options{
		Scheme: scheme, Mapper: mapper, ReaderFailOnMissingInformer: true,
		DefaultTransform: cache.TransformStripManagedFields(), DefaultNamespaces: settings.CacheNamespaces(),
		DefaultWatchErrorHandler: func(ctx context.Context, _ *toolscache.Reflector, err error) {
			s.report.log.LogAttrs(ctx, slog.LevelDebug, "policy: a watch ended; it is begun again", slog.String("error", err.Error()))
			s.mu.Lock()
			s.refusedAt = time.Now()
			s.mu.Unlock()
			s.set(&s.refused, err)
		},
		ByObject: map[client.Object]cache.ByObject{&corev1.Secret{}: {Namespaces: map[string]cache.Config{
			s.values.Namespace: {FieldSelector: fields.OneTermEqualSelector("metadata.name", s.values.Name)},
		}}},
	}
	if s.cache, err = cache.New(config, watched); err != nil {
		return nil, fmt.Errorf("reach the API server: %w", err)
	}
	return s, nil
}

// signal puts a value into c without waiting. It does nothing if c already holds a value.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Run follows changes in the cluster until ctx ends. After Run has returned, the last policy stays in force.
func (s *Source) Run(ctx context.Context) {
	ctx, stop := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer stop()
	filled, err := s.watch(ctx)
	if err != nil { // only a fault of this package: the kinds are known
		s.report.log.ErrorContext(ctx, "policy: cannot watch the cluster", slog.Any("error", err))
		s.set(&s.refused, err)
	}
	running.Go(func() {
		if err := s.cache.Start(ctx); err != nil {
			s.set(&s.refused, err)
		}
	})
	running.Go(func() {
		if toolscache.WaitForCacheSync(ctx.Done(), filled...) {
			s.filled.Store(err == nil)
			signal(s.changes)
		}
	})
	running.Go(func() { s.probe(ctx) })
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.news:
			s.report.trouble(ctx, s.trouble(), s.loaded.Load())
		case <-s.changes:
			if sleep(ctx, max(gather, time.Until(s.rested))) && s.filled.Load() {
				s.renew(ctx)
			}
		}
	}
}

// watch makes the cache follow all objects of a policy, and signals changes that may change the policy. Each returned
// function reports whether all objects of one kind have been read.
func (s *Source) watch(ctx context.Context) (filled []toolscache.InformerSynced, err error) {
	follow := func(o client.Object, counts func(before, now any) bool) error {
		informer, err := s.cache.GetInformer(ctx, o, cache.BlockUntilSynced(false))
		if err != nil {
			return err
		}
		handler, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
			AddFunc:    func(any) { signal(s.changes) },
			DeleteFunc: func(any) { signal(s.changes) },
			UpdateFunc: func(before, now any) {
				if counts(before, now) {
					signal(s.changes)
				}
			},
		})
		if err == nil {
			filled = append(filled, handler.HasSynced)
		}
		return err
	}
	for _, kind := range kinds {
		if err := follow(newObject(kind), objectCounts); err != nil {
			return filled, fmt.Errorf("watch objects of %s: %w", kind, err)
		}
	}
	if err := follow(&corev1.Secret{}, secretCounts); err != nil {
		return filled, fmt.Errorf("watch the Secret %s: %w", s.values, err)
	}
	return filled, nil
}

func newObject(kind string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(v1alpha1.SchemeGroupVersion.WithKind(kind))
	return o
}

// objectCounts reports whether a change of an object may change the policy. Such a change is a new UID, a new
// generation, or a new standing of a Project.
func objectCounts(before, now any) bool {
	a, b := before.(*unstructured.Unstructured), now.(*unstructured.Unstructured)
	return a.GetUID() != b.GetUID() || a.GetGeneration() != b.GetGeneration() || a.GetKind() == "Project" && standingOf(a) != standingOf(b)
}

func secretCounts(before, now any) bool {
	a, b := before.(*corev1.Secret), now.(*corev1.Secret)
	return a.Labels[v1alpha1.LabelManaged] != b.Labels[v1alpha1.LabelManaged] || !reflect.DeepEqual(a.Data, b.Data)
}

// renew makes a policy from the objects in the cache and applies it. If the Secret with the values cannot be used, the
// last policy stays, and trouble returns the reason.
func (s *Source) renew(ctx context.Context) {
	seen, err := s.collect(ctx)
	s.set(&s.noValues, err)
	if err == nil {
		s.apply(ctx, seen)
	}
}

// probe checks every few seconds that the API server answers. The watches alone would notice a server that hangs only
// after most of a minute.
func (s *Source) probe(ctx context.Context) {
	for {
		within, cancel := context.WithTimeout(ctx, probeWithin)
		one := &metav1.PartialObjectMetadataList{}
		one.SetGroupVersionKind(v1alpha1.SchemeGroupVersion.WithKind("ProjectList"))
		err := s.api.List(within, one, client.InNamespace(s.probed), client.Limit(1))
		cancel()
		if ctx.Err() != nil {
			return
		}
		s.set(&s.unreachable, err)
		signal(s.news) // a refusal may be over
		if !sleep(ctx, probeEvery) {
			return
		}
	}
}

// set stores err in a field of s that trouble reads; nil means that nothing is wrong. It signals news if the error has
// changed.
func (s *Source) set(what *error, err error) {
	s.mu.Lock()
	news := (*what == nil) != (err == nil) || err != nil && err.Error() != (*what).Error()
	*what = err
	s.mu.Unlock()
	if news {
		signal(s.news)
	}
}

// trouble returns the reason why the policy in force may be out of date, or nil if no such reason is known.
func (s *Source) trouble() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.unreachable != nil:
		return fmt.Errorf("the API server: %w", s.unreachable)
	case s.refused != nil && (!s.filled.Load() || apierrors.IsForbidden(s.refused) && time.Since(s.refusedAt) < rememberRefusal):
		return s.refused
	}
	return s.noValues
}

// errLoading is the error of [Source.Loaded] before the first policy is in force, if nothing is known to be wrong.
var errLoading = errors.New("the first policy is being loaded")

// Healthy returns nil if a policy is in force and up to date, and otherwise the reason why it is not. Faulty objects do
// not count as a reason.
func (s *Source) Healthy() error {
	if err := s.trouble(); err != nil {
		return err
	}
	return s.Loaded()
}

// Loaded returns nil after the first policy is in force, and until then the reason why it is not.
func (s *Source) Loaded() error {
	if s.loaded.Load() {
		return nil
	}
	if err := s.trouble(); err != nil {
		return err
	}
	return errLoading
}

// sleep waits for d. It reports whether d passed before ctx ended.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
