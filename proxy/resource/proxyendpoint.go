package resource

// Access is how an endpoint authenticates its callers: by the header Origin or by an API key.
//
// +kubebuilder:validation:Enum=Origin;Key
type Access string

// The ways in which an endpoint authenticates its callers.
const (
	// AccessByOrigin checks the header Origin, which browsers enforce and other clients can forge.
	AccessByOrigin Access = "Origin"
	// AccessByKey requires an API key with the scope proxy:use.
	AccessByKey Access = "Key"
)

// ProxyEndpointSpec is the desired state of an endpoint: its callers, and the requests that they may send.
//
// +kubebuilder:validation:XValidation:rule="self.access != 'Origin' || (has(self.origins) && size(self.origins) > 0)",message="origins has at least one rule with access: Origin; access: Key may go without"
type ProxyEndpointSpec struct {
	// projectId must match X-Project-ID of a request. It is immutable.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9][A-Za-z0-9._~-]*$')",message="projectId has letters, digits and . _ ~ -, of which the first is a letter or digit, such as pr_demo",messageExpression="'projectId is ' + self + '; allowed: letters, digits and . _ ~ -, of which the first is a letter or digit, such as pr_demo'"
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="projectId is immutable: make another ProxyEndpoint for another project"
	ProjectID string `json:"projectId" yaml:"projectId"`

	// environment must match X-Environment of a request, such as prod.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:Pattern=`^[^\x00]+$`
	// +kubebuilder:validation:XValidation:rule="size(bytes(self)) <= 256",message="environment has 1 to 256 bytes of UTF-8"
	Environment string `json:"environment" yaml:"environment"`

	// access is Origin or Key. Origin checks the header Origin, which browsers enforce and other clients can forge. Key
	// requires an API key with the scope proxy:use in X-Proxy-Api-Key.
	//
	// +optional
	// +kubebuilder:default=Origin
	Access Access `json:"access,omitempty" yaml:"access"`

	// origins are the allowed origins. At least one is required with access: Origin. With access: Key, requests without
	// Origin are always allowed.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	Origins []Rule `json:"origins,omitempty" yaml:"origins"`

	// destinations are the allowed destinations. At least one is required.
	//
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:XValidation:rule="size(self) > 0",message="destinations has at least one rule, such as {domain: example.com}"
	// +kubebuilder:validation:items:XValidation:rule="!has(self.pattern) || self.pattern.contains(r'\\Q') || !self.pattern.matches(r'^((\\\\[^/]|\\[[^\\]]*\\]|[^/\\\\\\[])*://)?(\\\\[^/]|\\[[^\\]]*\\]|[^/\\\\\\[])*[.]')",message="the host in a pattern has to match no slash, or the pattern allows other hosts too: write it without . for any character, such as https://[^/]+\\.example\\.com/.*"
	Destinations []Rule `json:"destinations" yaml:"destinations"`

	// methods are the allowed methods. None: all.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=64
	// +kubebuilder:validation:items:Pattern="^[!#-'*+.0-9A-Z^-z|~-]+$"
	// +kubebuilder:validation:items:XValidation:rule="self != 'CONNECT'",message="methods are such as GET or POST; CONNECT is never allowed"
	Methods []string `json:"methods,omitempty" yaml:"methods"`

	// credentials are the ids of the Credentials that requests may use. They must have the same project and environment.
	// A Credential of another namespace must list this namespace in its allowedNamespaces.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MaxLength=69
	// +kubebuilder:validation:items:XValidation:rule="self.matches('^cred_[A-Za-z0-9_-]{1,64}$')",message="credentials are ids: cred_ and 1 to 64 letters, digits, _ or -",messageExpression="'a credential is ' + self + '; allowed: ids, which are cred_ and 1 to 64 letters, digits, _ or -'"
	Credentials []string `json:"credentials,omitempty" yaml:"credentials"`

	// ports are the allowed ports. None: 443, and 80 with allowHTTP.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:Minimum=1
	// +kubebuilder:validation:items:Maximum=65535
	Ports []int32 `json:"ports,omitempty" yaml:"ports"`

	// allowHTTP allows credentials over http, where the network can read them.
	//
	// +optional
	AllowHTTP bool `json:"allowHTTP,omitempty" yaml:"allowHTTP"`

	// scrub configures the search of answers for the endpoint's credentials.
	//
	// +optional
	Scrub Scrub `json:"scrub,omitzero" yaml:"scrub"`

	// caBundle holds, as PEM, the only certificate authorities that the endpoint trusts. Not set: the system's.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=262144
	// +kubebuilder:validation:XValidation:rule="self == '' || self.contains('-----BEGIN CERTIFICATE-----')",message="caBundle holds at least one certificate in PEM"
	CABundle string `json:"caBundle,omitempty" yaml:"caBundle"`

	// limits bound the endpoint's requests.
	//
	// +optional
	// +kubebuilder:default={}
	Limits Limits `json:"limits,omitzero" yaml:"limits"`

	// timeouts bound the duration of a request.
	//
	// +optional
	// +kubebuilder:default={}
	Timeouts Timeouts `json:"timeouts,omitzero" yaml:"timeouts"`
}

// Scrub configures the search of answers for the endpoint's credentials.
type Scrub struct {
	// disabled passes answers on without a search.
	//
	// +optional
	Disabled bool `json:"disabled,omitempty" yaml:"disabled"`

	// passUnreadable passes answers in encodings that cannot be searched, instead of refusing them.
	//
	// +optional
	PassUnreadable bool `json:"passUnreadable,omitempty" yaml:"passUnreadable"`
}

// Limits bound the requests of an endpoint: their rate, their number in flight, and the sizes of bodies.
type Limits struct {
	// requestsPerSecond is the rate of all callers together. 0: any number.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000
	RequestsPerSecond int32 `json:"requestsPerSecond,omitempty" yaml:"requestsPerSecond"`

	// burst is how many requests may arrive at once after an idle period. 0: twice requestsPerSecond.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000
	Burst int32 `json:"burst,omitempty" yaml:"burst"`

	// concurrent is how many requests may be in flight in one process of the proxy. 0: 256.
	//
	// +optional
	// +kubebuilder:default=256
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000
	Concurrent int32 `json:"concurrent,omitempty" yaml:"concurrent"`

	// requestBytes bounds a request's body, in bytes. 0: any size.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1125899906842624
	RequestBytes int64 `json:"requestBytes,omitempty" yaml:"requestBytes"`

	// responseBytes bounds an answer's body as the proxy reads it from the target, in bytes. A compressed body counts as
	// compressed. The proxy cuts off a longer one. 0: any size.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1125899906842624
	ResponseBytes int64 `json:"responseBytes,omitempty" yaml:"responseBytes"`
}

// Timeouts bound the phases of a request: the connection, the wait for the answer's headers, idle time, and the whole
// request.
type Timeouts struct {
	// connect bounds the connection to the target, and the TLS handshake separately; up to 1m. 0s: 10s.
	//
	// +optional
	// +kubebuilder:default="10s"
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,9}([.][0-9]{1,9})?(ns|us|µs|ms|s|m|h))+$') && duration(self) <= duration('1m')",message="connect is a duration from 0s to 1m in h, m, s, ms, us or ns, such as 10s",messageExpression="'connect is ' + self + '; allowed: a duration from 0s to 1m in h, m, s, ms, us or ns, such as 10s'"
	Connect Duration `json:"connect,omitempty" yaml:"connect"`

	// headers bounds the time from the end of the request to the headers of the answer; up to 1h. 0s: 10m.
	//
	// +optional
	// +kubebuilder:default="10m"
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,9}([.][0-9]{1,9})?(ns|us|µs|ms|s|m|h))+$') && duration(self) <= duration('1h')",message="headers is a duration from 0s to 1h in h, m, s, ms, us or ns, such as 10m",messageExpression="'headers is ' + self + '; allowed: a duration from 0s to 1h in h, m, s, ms, us or ns, such as 10m'"
	Headers Duration `json:"headers,omitempty" yaml:"headers"`

	// idle bounds the time without a byte of the request's body, or of the answer's as the proxy reads it from the target. At
	// most 24h. 0s: 5m.
	//
	// +optional
	// +kubebuilder:default="5m"
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,9}([.][0-9]{1,9})?(ns|us|µs|ms|s|m|h))+$') && duration(self) <= duration('24h')",message="idle is a duration from 0s to 24h in h, m, s, ms, us or ns, such as 5m",messageExpression="'idle is ' + self + '; allowed: a duration from 0s to 24h in h, m, s, ms, us or ns, such as 5m'"
	Idle Duration `json:"idle,omitempty" yaml:"idle"`

	// total bounds the whole request, including a stream; up to 168h. Not set, or 0s: 15 minutes,
	// and any time for a stream.
	//
	// +optional
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,9}([.][0-9]{1,9})?(ns|us|µs|ms|s|m|h))+$') && duration(self) <= duration('168h')",message="total is a duration from 0s to 168h in h, m, s, ms, us or ns, such as 10m",messageExpression="'total is ' + self + '; allowed: a duration from 0s to 168h in h, m, s, ms, us or ns, such as 10m'"
	Total Duration `json:"total,omitempty" yaml:"total"`
}
