// Package resource defines the specs of Project, Credential and ProxyEndpoint: the meaning, the bounds and the default
// of each field. The objects of a Kubernetes cluster and the manifests of a folder have the same specs. The package
// imports nothing of Kubernetes. The API server checks the rules in the markers, and package manifest checks all specs.
//
// +kubebuilder:object:generate=true
package resource

import (
	"fmt"
	"time"
)

// Rule allows a domain, or all texts that a pattern matches as a whole. Exactly one of domain and pattern is set.
//
// +kubebuilder:validation:XValidation:rule="has(self.domain) != has(self.pattern)",message="exactly one of domain and pattern is to be set"
type Rule struct {
	// domain allows a domain such as example.com and all its subdomains, over https on its default port. Addresses are
	// not allowed, nor are public suffixes such as com or github.io, under which anybody can register a name.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="!self.matches('[\\\\s/:@*?#\\\\[\\\\]]') && self.contains('.')",message="domain is a name such as example.com, without scheme, port, path or wildcard",messageExpression="'domain is ' + self + '; allowed: a name such as example.com, without scheme, port, path or wildcard'"
	Domain string `json:"domain,omitempty" yaml:"domain"`

	// pattern is a regular expression (RE2) of up to 1024 bytes. It must match the whole value of the header Origin, or
	// the whole scheme://host[:port]/path of a destination, without the query.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="size(bytes(self)) <= 1024",message="pattern has 1 to 1024 bytes"
	// +kubebuilder:validation:XValidation:rule="''.matches(self) in [true, false]",message="pattern is a regular expression of RE2 syntax"
	Pattern string `json:"pattern,omitempty" yaml:"pattern"`
}

// Duration is a duration such as "1m30s". Empty: not set.
//
// +kubebuilder:validation:MaxLength=32
type Duration string

// Parse returns the duration, or 0 if d is empty. It returns an error if d is not a duration such as 1m30s.
func (d Duration) Parse() (time.Duration, error) {
	if d == "" {
		return 0, nil
	}
	parsed, err := time.ParseDuration(string(d))
	if err != nil {
		return 0, fmt.Errorf("%q is not a duration such as 1m30s", string(d))
	}
	return parsed, nil
}
