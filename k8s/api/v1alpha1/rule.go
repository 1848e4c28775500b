package v1alpha1

// Rule allows a domain, or what a pattern matches whole. Exactly one of the two is set.
//
// +kubebuilder:validation:XValidation:rule="has(self.domain) != has(self.pattern)",message="exactly one of domain and pattern is to be set"
type Rule struct {
	// domain allows a domain and all its subdomains, over https on its default port: example.com. One under
	// which anybody can have a name, such as com or github.io, is not allowed, nor is an address.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="!self.matches('[\\\\s/:@*?#\\\\[\\\\]]') && self.contains('.')",message="domain is a name such as example.com, without scheme, port, path or wildcard"
	Domain string `json:"domain,omitempty"`

	// pattern is a regular expression (RE2) of up to 1024 bytes, which has to match the whole: of an origin the
	// value of the header Origin, of a destination scheme://host[:port]/path, without the query.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="size(bytes(self)) <= 1024",message="pattern has 1 to 1024 bytes"
	// +kubebuilder:validation:XValidation:rule="''.matches(self) in [true, false]",message="pattern is a regular expression of RE2 syntax"
	Pattern string `json:"pattern,omitempty"`
}
