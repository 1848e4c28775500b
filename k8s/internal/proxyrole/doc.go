// Package proxyrole holds no code: it says what the credential proxy asks of the API server when its policy
// comes from there. The role lectern-proxy is generated from it.
//
// Its policy are Credentials and ProxyEndpoints; Projects say which namespaces may have them.
// +kubebuilder:rbac:groups=lectern.dev,resources=credentials;projects;proxyendpoints,verbs=list;watch
//
// Secrets hold the values. Their metadata is watched, and those that a Credential names are read, one by one.
// +kubebuilder:rbac:groups="",resources=secrets,verbs=get;list;watch
package proxyrole
