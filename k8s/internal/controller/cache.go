package controller

import (
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// CacheOptions returns the options of the operator's cache of Lectern's objects. It covers the given namespaces, or all
// if there are none.
func CacheOptions(namespaces []string) cache.Options {
	o := cache.Options{DefaultTransform: cache.TransformStripManagedFields()}
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
