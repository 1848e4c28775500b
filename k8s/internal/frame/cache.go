package frame

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// CacheOptions returns the options of the operator's cache. It holds Lectern's objects completely, but only the metadata
// of Secrets, for [builder.WatchesMetadata]. It covers the given namespaces, or all if there are none.
func CacheOptions(namespaces []string) cache.Options {
	o := cache.Options{
		DefaultTransform: cache.TransformStripManagedFields(),
		ByObject:         map[client.Object]cache.ByObject{&corev1.Secret{}: {Transform: withoutAnnotations}},
	}
	if len(namespaces) > 0 {
		o.DefaultNamespaces = map[string]cache.Config{}
		for _, name := range namespaces {
			o.DefaultNamespaces[name] = cache.Config{}
		}
	}
	return o
}

// ClientOptions returns options with which the client reads Secrets from the API server, not from the cache. So the
// operator holds no value that it did not request.
func ClientOptions() client.Options {
	return client.Options{Cache: &client.CacheOptions{DisableFor: []client.Object{&corev1.Secret{}}}}
}

// withoutAnnotations removes annotations and managed fields before an object is cached. kubectl apply stores the whole
// object in an annotation, including the values of a Secret.
func withoutAnnotations(object any) (any, error) {
	accessor, err := meta.Accessor(object)
	if err != nil {
		return object, nil // the marker of a deletion that was missed: it holds what was transformed before
	}
	accessor.SetAnnotations(nil)
	accessor.SetManagedFields(nil)
	return object, nil
}
