// Package v1alpha1 owns the custom resources of Lectern as they are written down: what each field means, its
// bounds and its default. The CustomResourceDefinitions, their page in docs/crds.md, the deep copies and the
// apply configurations are generated from it.
//
// It imports nothing but Kubernetes' API machinery, so that any program may read and write these objects.
//
// Specs of Credential and ProxyEndpoint are those that the credential proxy reads from a folder of manifests,
// field by field.
//
// +kubebuilder:object:generate=true
// +kubebuilder:ac:generate=true
// +groupName=lectern.dev
package v1alpha1
