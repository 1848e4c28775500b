// Package restconfig finds the API server for the operator and its jobs.
package restconfig

import (
	"fmt"
	"os"
	"strings"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client/config"
)

// Load returns a copy of given with the user agent. If given is nil, Load takes the service account of the pod, or
// KUBECONFIG, and returns an error if there is neither.
func Load(given *rest.Config, userAgent string) (*rest.Config, error) {
	if given == nil {
		var err error
		if given, err = config.GetConfig(); err != nil {
			return nil, fmt.Errorf("find the API server: %w", err)
		}
	}
	found := rest.CopyConfig(given)
	found.UserAgent = userAgent
	return found, nil
}

// Namespace returns the pod's namespace, or lectern outside a pod. The operator's Lease is there.
func Namespace() string {
	name, err := os.ReadFile("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
	if err != nil {
		return "lectern"
	}
	return strings.TrimSpace(string(name))
}
