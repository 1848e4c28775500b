package frame

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// CacheOptions are those of the operator's memory: the objects of the project whole, and of Secrets names,
// labels and owners alone, by which [builder.WatchesMetadata] hears of their changes. It looks at the given
// namespaces, all when there are none.
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

// ClientOptions have Secrets read from the API server, one at a time, so that no value of theirs is in
// memory that nobody asked for.
func ClientOptions() client.Options {
	return client.Options{Cache: &client.CacheOptions{DisableFor: []client.Object{&corev1.Secret{}}}}
}

// withoutAnnotations drops what must not come into memory: kubectl apply leaves the whole object in an
// annotation, and with it the values of a Secret.
func withoutAnnotations(object any) (any, error) {
	accessor, err := meta.Accessor(object)
	if err != nil {
		return object, nil // the marker of a deletion that was missed: it holds what was transformed before
	}
	accessor.SetAnnotations(nil)
	accessor.SetManagedFields(nil)
	return object, nil
}
