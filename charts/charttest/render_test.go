package charttest

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	apps "k8s.io/api/apps/v1"
	autoscaling "k8s.io/api/autoscaling/v2"
	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
	rbac "k8s.io/api/rbac/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
	gateway "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/yaml"
)

// chartFolder is the folder of the chart.
const chartFolder = "../lectern"

// registry is image.registry if a test's values do not set it, because the chart needs one.
const registry = "registry.example.com"

// object is an object of any kind.
type object interface {
	meta.Object
}

// kinds are the kinds that the chart may create, by apiVersion and kind.
func kinds() map[string]func() object {
	return map[string]func() object{
		"v1/ServiceAccount":                                func() object { return &core.ServiceAccount{} },
		"v1/Service":                                       func() object { return &core.Service{} },
		"v1/Secret":                                        func() object { return &core.Secret{} },
		"v1/ConfigMap":                                     func() object { return &core.ConfigMap{} },
		"v1/PersistentVolumeClaim":                         func() object { return &core.PersistentVolumeClaim{} },
		"v1/Pod":                                           func() object { return &core.Pod{} },
		"apps/v1/Deployment":                               func() object { return &apps.Deployment{} },
		"batch/v1/Job":                                     func() object { return &batch.Job{} },
		"batch/v1/CronJob":                                 func() object { return &batch.CronJob{} },
		"autoscaling/v2/HorizontalPodAutoscaler":           func() object { return &autoscaling.HorizontalPodAutoscaler{} },
		"policy/v1/PodDisruptionBudget":                    func() object { return &policy.PodDisruptionBudget{} },
		"networking.k8s.io/v1/NetworkPolicy":               func() object { return &networking.NetworkPolicy{} },
		"networking.k8s.io/v1/Ingress":                     func() object { return &networking.Ingress{} },
		"gateway.networking.k8s.io/v1/HTTPRoute":           func() object { return &gateway.HTTPRoute{} },
		"monitoring.coreos.com/v1/ServiceMonitor":          func() object { return &monitoring.ServiceMonitor{} },
		"monitoring.coreos.com/v1/PrometheusRule":          func() object { return &monitoring.PrometheusRule{} },
		"rbac.authorization.k8s.io/v1/ClusterRole":         func() object { return &rbac.ClusterRole{} },
		"rbac.authorization.k8s.io/v1/ClusterRoleBinding":  func() object { return &rbac.ClusterRoleBinding{} },
		"rbac.authorization.k8s.io/v1/Role":                func() object { return &rbac.Role{} },
		"rbac.authorization.k8s.io/v1/RoleBinding":         func() object { return &rbac.RoleBinding{} },
		"apiextensions.k8s.io/v1/CustomResourceDefinition": func() object { return &apiextensions.CustomResourceDefinition{} },
	}
}

// rendered is the output of the chart for some values.
type rendered struct {
	objects []object
	notes   string
	text    string // of the objects
}

// render renders the chart as Helm does, for a release called lectern in the namespace lectern. Each object must have
// a known kind and no unknown field.
func render(t *testing.T, values string) rendered {
	t.Helper()
	r, err := tryRender(values)
	if err != nil {
		t.Fatalf("render with %q: %v", values, err)
	}
	return r
}

// installed is the cluster at the first installation: it has an API server, and no object of Lectern.
func installed() []*unstructured.Unstructured {
	return []*unstructured.Unstructured{
		{Object: map[string]any{
			"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "metadata": map[string]any{"namespace": "default", "name": "kubernetes"},
			"addressType": "IPv4", "endpoints": []any{map[string]any{"addresses": []any{"172.20.0.2"}}},
		}},
		{Object: map[string]any{
			"apiVersion": "v1", "kind": "Service", "metadata": map[string]any{"namespace": "default", "name": "kubernetes"},
			"spec": map[string]any{"clusterIPs": []any{"10.96.0.1", "fd00:10:96::1"}},
		}},
	}
}

// renders are the renders of tryRender by their values. Several tests read the same render, so no test may change it.
var renders sync.Map

func tryRender(values string) (rendered, error) {
	once, _ := renders.LoadOrStore(values, sync.OnceValues(func() (rendered, error) { return renderAnew(values) }))
	return once.(func() (rendered, error))()
}

// renderAnew is tryRender without the memory of earlier renders.
func renderAnew(values string) (rendered, error) {
	return renderOn(values, common.ReleaseOptions{Name: "lectern", Namespace: "lectern", IsInstall: true, Revision: 1}, append(installed(), namespaceOf("team-a"), namespaceOf("team-b")))
}

func namespaceOf(name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": name}}}
}

// renderOn renders the chart for a release, on a cluster that has some objects. Without objects there is no cluster, as
// in helm template.
func renderOn(values string, release common.ReleaseOptions, objects []*unstructured.Unstructured) (rendered, error) {
	return renderWith(values, release, objects, "lectern.dev/v1alpha1", "monitoring.coreos.com/v1")
}

// loadChart loads the chart once for all renders, which do not change it.
var loadChart = sync.OnceValues(func() (*chart.Chart, error) { return loader.Load(chartFolder) })

// renderWith is renderOn a cluster that has the given APIs in addition to those of Kubernetes.
func renderWith(values string, release common.ReleaseOptions, objects []*unstructured.Unstructured, apis ...string) (rendered, error) {
	lectern, err := loadChart()
	if err != nil {
		return rendered{}, err
	}
	given := map[string]any{}
	if err := yaml.Unmarshal([]byte(values), &given); err != nil {
		return rendered{}, fmt.Errorf("the test's values: %w", err)
	}
	if image, ok := given["image"].(map[string]any); !ok {
		given["image"] = map[string]any{"registry": registry}
	} else if _, ok := image["registry"]; !ok {
		image["registry"] = registry
	}
	if _, ok := given["requireSecrets"]; !ok {
		given["requireSecrets"] = false // most tests are about other objects
	}
	capabilities := *common.DefaultCapabilities
	capabilities.APIVersions = append(slices.Clone(capabilities.APIVersions), apis...)
	all, err := util.ToRenderValues(lectern, given, release, &capabilities)
	if err != nil {
		return rendered{}, err
	}
	files, err := map[string]string(nil), error(nil)
	if len(objects) == 0 {
		files, err = engine.Render(lectern, all)
	} else {
		files, err = engine.RenderWithClientProvider(lectern, all, cluster{objects, release.Namespace == ownAlone})
	}
	if err != nil {
		return rendered{}, err
	}
	var r rendered
	for _, name := range slices.Sorted(maps.Keys(files)) {
		switch {
		case strings.HasSuffix(name, "/NOTES.txt"):
			r.notes = files[name]
			continue
		case !strings.HasSuffix(name, ".yaml"):
			continue
		}
		objects, err := decode(files[name])
		if err != nil {
			return rendered{}, fmt.Errorf("%s: %w", name, err)
		}
		r.objects = append(r.objects, objects...)
		r.text += files[name]
	}
	return r, nil
}

// ownAlone is the namespace of a release whose account may read nothing outside this namespace.
const ownAlone = "own-alone"

// cluster answers the look-ups of templates.
type cluster struct {
	objects []*unstructured.Unstructured
	strict  bool // forbids all namespaces but ownAlone, and objects without one
}

// GetClientFor returns a client of the objects of a kind, all of which are in a namespace.
func (c cluster) GetClientFor(apiVersion, kind string) (dynamic.NamespaceableResourceInterface, bool, error) {
	resource, _ := apimeta.UnsafeGuessKindToResource(schema.FromAPIVersionAndKind(apiVersion, kind)) // as the fake guesses
	var some []runtime.Object
	for _, o := range c.objects {
		if o.GetAPIVersion() == apiVersion && o.GetKind() == kind {
			some = append(some, o)
		}
	}
	client := fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{resource: kind + "List"}, some...)
	client.PrependReactor("*", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if c.strict && action.GetNamespace() != ownAlone {
			return true, nil, apierrors.NewForbidden(action.GetResource().GroupResource(), "", errors.New("not allowed"))
		}
		return false, nil, nil
	})
	return client.Resource(resource), true, nil
}

// decoded are the objects by their documents: most documents are the same in all renders.
var decoded sync.Map

// decode reads the documents of one file strictly.
func decode(file string) ([]object, error) {
	var objects []object
	for document := range strings.SplitSeq("\n"+file, "\n---") {
		o, ok := decoded.Load(document)
		if !ok {
			var err error
			if o, err = decodeOne(document); err != nil {
				return nil, fmt.Errorf("%w in:\n%s", err, document)
			}
			decoded.Store(document, o)
		}
		if o != nil {
			objects = append(objects, o.(object))
		}
	}
	return objects, nil
}

// decodeOne reads one document. An empty document and one with only a comment are no object.
func decodeOne(document string) (any, error) {
	var kind struct{ APIVersion, Kind string }
	if err := yaml.Unmarshal([]byte(document), &kind); err != nil {
		return nil, err
	}
	if kind.Kind == "" && kind.APIVersion == "" {
		if body := strings.TrimSpace(document); body != "" && !strings.HasPrefix(body, "#") {
			return nil, errors.New("neither empty nor an object")
		}
		return nil, nil
	}
	newObject, ok := kinds()[kind.APIVersion+"/"+kind.Kind]
	if !ok {
		return nil, fmt.Errorf("a %s of %s is none of the chart's kinds", kind.Kind, kind.APIVersion)
	}
	o := newObject()
	return o, yaml.UnmarshalStrict([]byte(document), o)
}

func kindOf(o object) string {
	return o.(runtime.Object).GetObjectKind().GroupVersionKind().Kind
}

// of returns the rendered objects of one type, by name.
func of[T object](r rendered) map[string]T {
	found := map[string]T{}
	for _, o := range r.objects {
		if o, ok := o.(T); ok {
			found[o.GetName()] = o
		}
	}
	return found
}

// one returns the object of that type and name.
func one[T object](t *testing.T, r rendered, name string) T {
	t.Helper()
	o, ok := of[T](r)[name]
	if !ok {
		t.Fatalf("there is no %T called %s", o, name)
	}
	return o
}

// container returns a container of a Deployment, or an init container.
func container(t *testing.T, d *apps.Deployment, name string) core.Container {
	t.Helper()
	all := slices.Concat(d.Spec.Template.Spec.InitContainers, d.Spec.Template.Spec.Containers)
	i := slices.IndexFunc(all, func(c core.Container) bool { return c.Name == name })
	if i < 0 {
		t.Fatalf("%s has no container %s", d.Name, name)
	}
	return all[i]
}

// variable returns a container's variable.
func variable(c core.Container, name string) (core.EnvVar, bool) {
	i := slices.IndexFunc(c.Env, func(e core.EnvVar) bool { return e.Name == name })
	if i < 0 {
		return core.EnvVar{}, false
	}
	return c.Env[i], true
}
