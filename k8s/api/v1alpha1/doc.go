// Package v1alpha1 defines the custom resources of Lectern: the meaning, the bounds and the default of each field. The
// CustomResourceDefinitions, docs/reference/resources.md, the deep copies and the apply configurations are generated
// from this package.
//
// The specs of Project, Credential and ProxyEndpoint come from package resource, which the proxy's folder of manifests
// shares. Package v1alpha1 imports only package resource and Kubernetes' API machinery. It is in a module of its own,
// so that any program may use these objects. The apply configurations, which need client-go, are in
// k8s/internal/applyconfiguration. Tests of rules and defaults are in k8s/config, because they need an API server.
//
// +kubebuilder:object:generate=true
// +kubebuilder:ac:generate=true
// +kubebuilder:ac:output:package="../../internal/applyconfiguration"
// +groupName=lectern.dev
package v1alpha1
