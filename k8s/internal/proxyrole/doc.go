// Package proxyrole has no code. Its markers are the requests that the credential proxy sends to the API server, if its
// policy comes from there. The role lectern-proxy is generated from them.
//
// The policy consists of Credentials and ProxyEndpoints. Projects decide which namespaces may have them.
// +kubebuilder:rbac:groups=lectern.dev,resources=credentials;projects;proxyendpoints,verbs=list;watch
//
// Secrets hold the values. The proxy watches their metadata, and reads those that a Credential names, one by one.
// +kubebuilder:rbac:groups="",resources=secrets,verbs=get;list;watch
package proxyrole
