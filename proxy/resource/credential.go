package resource

// Place is a part of a request that may hold a credential's value.
//
// +kubebuilder:validation:Enum=Header;URL;Body
type Place string

// The parts of a request.
const (
	InHeader Place = "Header"
	InURL    Place = "URL"
	InBody   Place = "Body"
)

// CredentialSpec is the desired state of a credential: a value, and the requests that it may be used for.
//
// +kubebuilder:validation:XValidation:rule="!has(self.bodyPaths) || size(self.bodyPaths) == 0 || !has(self.places) || size(self.places) == 0 || 'Body' in self.places",message="bodyPaths has no meaning, because places has no Body"
// +kubebuilder:validation:XValidation:rule="!has(self.headers) || size(self.headers) == 0 || !has(self.places) || size(self.places) == 0 || 'Header' in self.places",message="headers has no meaning, because places has no Header"
type CredentialSpec struct {
	// projectId is the id of the project whose endpoints may use the credential. It is immutable.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9][A-Za-z0-9._~-]*$')",message="projectId has letters, digits and . _ ~ -, of which the first is a letter or digit, such as pr_demo",messageExpression="'projectId is ' + self + '; allowed: letters, digits and . _ ~ -, of which the first is a letter or digit, such as pr_demo'"
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="projectId is immutable: make another Credential for another project"
	ProjectID string `json:"projectId" yaml:"projectId"`

	// environment is the environment whose endpoints may use it, such as prod.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:Pattern=`^[^\x00]+$`
	// +kubebuilder:validation:XValidation:rule="size(bytes(self)) <= 256",message="environment has 1 to 256 bytes of UTF-8"
	Environment string `json:"environment" yaml:"environment"`

	// id is the id in placeholders such as {{ cred_stripe }}: cred_ and 1 to 64 letters, digits, _ or -. It must be
	// unique among the namespace's Credentials of the same project and environment. Of two with the same id, the older
	// one is in force. An endpoint uses the Credential of its own namespace. If there is none, it uses one of another
	// namespace that is granted to it.
	//
	// +required
	// +kubebuilder:validation:MaxLength=69
	// +kubebuilder:validation:XValidation:rule="self.matches('^cred_[A-Za-z0-9_-]{1,64}$')",message="id is cred_ and 1 to 64 letters, digits, _ or -",messageExpression="'id is ' + self + '; allowed: cred_ and 1 to 64 letters, digits, _ or -'"
	ID string `json:"id" yaml:"id"`

	// valueFrom refers to the value.
	//
	// +required
	ValueFrom ValueSource `json:"valueFrom" yaml:"valueFrom"`

	// destinations restrict the targets further than the endpoint does. None: no further restriction.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:XValidation:rule="!has(self.pattern) || self.pattern.contains(r'\\Q') || !self.pattern.matches(r'^((\\\\[^/]|\\[[^\\]]*\\]|[^/\\\\\\[])*://)?(\\\\[^/]|\\[[^\\]]*\\]|[^/\\\\\\[])*[.]')",message="the host in a pattern has to match no slash, or the pattern allows other hosts too: write it without . for any character, such as https://[^/]+\\.example\\.com/.*"
	Destinations []Rule `json:"destinations,omitempty" yaml:"destinations"`

	// places restrict the parts of a request that may hold the value: Header, URL, Body. None: any.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=3
	Places []Place `json:"places,omitempty" yaml:"places"`

	// headers restrict the headers that may hold the value, such as Authorization. None: any. With headers and without
	// places, no other part of a request may hold it, except those that bodyPaths names.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=256
	// +kubebuilder:validation:items:Pattern=`^[!#$%&'*+.^_|~0-9A-Za-z-]+$`
	Headers []string `json:"headers,omitempty" yaml:"headers"`

	// bodyPaths restrict where in a body the value may stand: JSON pointers such as /auth/token in JSON, names of fields or
	// parts in forms. Text and XML then never receive the value. None: anywhere in a body. With bodyPaths and without
	// places, no other part of a request may hold it, except the headers that headers names.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=1024
	BodyPaths []string `json:"bodyPaths,omitempty" yaml:"bodyPaths"`

	// allowedNamespaces are further namespaces whose ProxyEndpoints may use the credential; "*" for all.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:items:Pattern=`^(\*|[a-z0-9]([-a-z0-9]*[a-z0-9])?)$`
	AllowedNamespaces []string `json:"allowedNamespaces,omitempty" yaml:"allowedNamespaces"`
}

// ValueSource refers to a credential's value.
type ValueSource struct {
	// secretKeyRef names a key of a Secret in the same namespace.
	//
	// +required
	SecretKeyRef SecretKeyRef `json:"secretKeyRef" yaml:"secretKeyRef"`
}

// SecretKeyRef names a key of a Secret in the same namespace.
type SecretKeyRef struct {
	// name is the Secret's name.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	Name string `json:"name" yaml:"name"`

	// key is a key of the Secret's data. Its value has 1 to 16384 bytes. If the endpoint scrubs answers, it needs at least
	// 8 bytes.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[-._a-zA-Z0-9]+$`
	Key string `json:"key" yaml:"key"`
}
