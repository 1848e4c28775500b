// Package proxyrole has no code. Its markers are the requests that the credential proxy sends to the API server, if its
// policy comes from there. The role lectern-proxy is generated from them.
//
// The policy consists of Credentials and ProxyEndpoints. Projects decide which namespaces may have them.
// +kubebuilder:rbac:groups=lectern.dev,resources=credentials;projects;proxyendpoints,verbs=list;watch
//
// The operator writes the values of Credentials to one Secret.
// +kubebuilder:rbac:groups="",namespace=lectern,resources=secrets,resourceNames=lectern-proxy-values,verbs=list;watch
package proxyrole
