package controller

import (
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lectern-dev/lectern/k8s/cluster"
)

// CacheOptions returns the options of the operator's cache of Lectern's objects. The cache holds the watched
// namespaces, and leaves out managed fields.
func CacheOptions(c cluster.Config) cache.Options {
	return cache.Options{DefaultTransform: cache.TransformStripManagedFields(), DefaultNamespaces: c.CacheNamespaces()}
}

// ClientOptions returns options with which the client reads Secrets from the API server, not from the cache. So the
// operator holds only the values that it has requested.
func ClientOptions() client.Options {
	return client.Options{Cache: &client.CacheOptions{DisableFor: []client.Object{&corev1.Secret{}}}}
}
