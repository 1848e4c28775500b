// Package v1alpha1 defines the custom resources of Lectern: the meaning, the bounds and the default of each field. The
// CustomResourceDefinitions, their page in docs/reference/resources.md, the deep copies and the apply configurations are generated from
// it.
//
// It only imports Kubernetes' API machinery, so that any program may read and write these objects.
//
// The specs of Credential and ProxyEndpoint have the same fields as in the proxy's folder of manifests.
//
// +kubebuilder:object:generate=true
// +kubebuilder:ac:generate=true
// +groupName=lectern.dev
package v1alpha1
