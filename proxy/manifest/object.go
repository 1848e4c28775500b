// Package manifest reads endpoints and credentials from manifests, and turns them into policy. It defines the fields of
// the kinds Credential and ProxyEndpoint of lectern.dev/v1alpha1, and the fields of Project that restrict them.
//
// It follows the changes of a folder of YAML files. A folder is applied whole or not at all: with one bad file, the
// previous policy stays in force. For objects that are independent of each other, [BuildEach] excludes only the faulty
// ones.
package manifest

import (
	"time"
)

// APIVersion is the API version of Project, Credential and ProxyEndpoint.
const APIVersion = "lectern.dev/v1alpha1"

// Bounds of one object.
const (
	MaxRules    = 256 // origins, destinations and credentials: each
	MaxMethods  = 32
	MaxPorts    = 64
	MaxHeaders  = 32
	MaxCABundle = 256 << 10 // bytes
)

// Metadata names an object.
type Metadata struct {
	Name      string `json:"name" yaml:"name"`
	Namespace string `json:"namespace,omitempty" yaml:"namespace,omitempty"`
	// Labels and Annotations are ignored.
	Labels      map[string]string `json:"labels,omitempty" yaml:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty" yaml:"annotations,omitempty"`
}

// ProjectSpec is the spec of a Project. This package only reads which namespaces may use the project.
type ProjectSpec struct {
	// ProjectID is the id by which objects name the project. Required.
	ProjectID string `json:"projectId" yaml:"projectId"`
	// Title, Region, DeletionPolicy and RetentionDays are ignored.
	Title          string `json:"title" yaml:"title"`
	Region         string `json:"region,omitempty" yaml:"region,omitempty"`
	DeletionPolicy string `json:"deletionPolicy,omitempty" yaml:"deletionPolicy,omitempty"`
	RetentionDays  int32  `json:"retentionDays,omitempty" yaml:"retentionDays,omitempty"`
	// AllowedNamespaces are further namespaces whose objects may belong to the project; "*" for all.
	AllowedNamespaces []string `json:"allowedNamespaces,omitempty" yaml:"allowedNamespaces,omitempty"`
}

// CredentialSpec is the spec of a Credential: a value, and the requests that it may be used for.
type CredentialSpec struct {
	// Project and Environment must be those of the endpoints that use the credential. Required.
	Project     string `json:"project" yaml:"project"`
	Environment string `json:"environment" yaml:"environment"`
	// ID is the id in placeholders: "cred_" and 1 to 64 letters, digits, "_" or "-". It is unique among the
	// Credentials of a namespace for one project and environment. Required.
	ID string `json:"id" yaml:"id"`
	// ValueFrom refers to the value. Required.
	ValueFrom ValueSource `json:"valueFrom" yaml:"valueFrom"`
	// Destinations restrict the targets further than the endpoint does. None: no further restriction.
	Destinations []RuleSpec `json:"destinations,omitempty" yaml:"destinations,omitempty"`
	// Places restrict the parts of a request that may hold the value: header, url, body. None: any.
	Places []string `json:"places,omitempty" yaml:"places,omitempty"`
	// Headers restrict the headers that may hold the value. None: any. With headers and without places, no other part
	// of a request may hold it.
	Headers []string `json:"headers,omitempty" yaml:"headers,omitempty"`
	// AllowedNamespaces are further namespaces whose endpoints may use the credential; "*" for all.
	AllowedNamespaces []string `json:"allowedNamespaces,omitempty" yaml:"allowedNamespaces,omitempty"`
}

// ValueSource refers to a credential's value.
type ValueSource struct {
	SecretKeyRef SecretKeyRef `json:"secretKeyRef" yaml:"secretKeyRef"`
}

// SecretKeyRef names a key of a Secret in the same namespace.
type SecretKeyRef struct {
	Name string `json:"name" yaml:"name"`
	Key  string `json:"key" yaml:"key"`
}

// RuleSpec allows a domain with all its subdomains (https on its default port), or all texts that an RE2 pattern matches
// as a whole. Exactly one is set.
type RuleSpec struct {
	Domain  string `json:"domain,omitempty" yaml:"domain,omitempty"`
	Pattern string `json:"pattern,omitempty" yaml:"pattern,omitempty"`
}

// ProxyEndpointSpec is the spec of a ProxyEndpoint: the callers, and the requests that they may send.
type ProxyEndpointSpec struct {
	// Project and Environment must match X-Project-ID and X-Environment of a request. Required.
	Project     string `json:"project" yaml:"project"`
	Environment string `json:"environment" yaml:"environment"`
	// Access is origin or key. origin is the default: browsers enforce it, and other clients can forge it.
	Access string `json:"access,omitempty" yaml:"access,omitempty"`
	// Origins are allowed. At least one is required with access origin. With access key, requests without Origin are
	// always allowed.
	Origins []RuleSpec `json:"origins,omitempty" yaml:"origins,omitempty"`
	// Destinations are allowed. At least one.
	Destinations []RuleSpec `json:"destinations" yaml:"destinations"`
	// Methods are allowed. None: all.
	Methods []string `json:"methods,omitempty" yaml:"methods,omitempty"`
	// Credentials are the ids that may be used.
	Credentials []string `json:"credentials,omitempty" yaml:"credentials,omitempty"`
	// Ports are allowed. None: 443, and 80 with allowHTTP.
	Ports []int `json:"ports,omitempty" yaml:"ports,omitempty"`
	// AllowHTTP allows credentials over http, where the network can read them.
	AllowHTTP bool `json:"allowHTTP,omitempty" yaml:"allowHTTP,omitempty"`
	// Scrub configures the search of answers for the endpoint's credentials.
	Scrub ScrubSpec `json:"scrub,omitempty" yaml:"scrub,omitempty"`
	// CABundle holds, as PEM, the only certificate authorities that the endpoint trusts. Empty: the system's.
	CABundle string `json:"caBundle,omitempty" yaml:"caBundle,omitempty"`
	// Limits bound the endpoint's requests.
	Limits LimitsSpec `json:"limits,omitempty" yaml:"limits,omitempty"`
	// Timeouts bound the duration of a request.
	Timeouts TimeoutsSpec `json:"timeouts,omitempty" yaml:"timeouts,omitempty"`
}

// ScrubSpec configures the search of answers for the endpoint's credentials.
type ScrubSpec struct {
	// Disabled passes answers on without a search.
	Disabled bool `json:"disabled,omitempty" yaml:"disabled,omitempty"`
	// PassUnreadable passes answers in encodings that cannot be searched, instead of refusing them.
	PassUnreadable bool `json:"passUnreadable,omitempty" yaml:"passUnreadable,omitempty"`
}

// LimitsSpec bounds the requests of an endpoint.
type LimitsSpec struct {
	// RequestsPerSecond is the rate of all callers together. 0: any number.
	RequestsPerSecond int `json:"requestsPerSecond,omitempty" yaml:"requestsPerSecond,omitempty"`
	// Burst is how many requests may arrive at once after an idle period. 0: twice RequestsPerSecond.
	Burst int `json:"burst,omitempty" yaml:"burst,omitempty"`
	// Concurrent is how many requests may be in flight in one process. 0: 256.
	Concurrent int `json:"concurrent,omitempty" yaml:"concurrent,omitempty"`
	// RequestBytes bounds a request's body. 0: any size.
	RequestBytes int64 `json:"requestBytes,omitempty" yaml:"requestBytes,omitempty"`
	// ResponseBytes bounds an answer's body. 0: any size.
	ResponseBytes int64 `json:"responseBytes,omitempty" yaml:"responseBytes,omitempty"`
}

// TimeoutsSpec bounds the phases of a request.
type TimeoutsSpec struct {
	// Connect bounds the connection to the target, and the TLS handshake separately. Not set: 10s.
	Connect Duration `json:"connect,omitempty" yaml:"connect,omitempty"`
	// Headers bounds the time from the end of the request to the headers of the answer. Not set: 60s.
	Headers Duration `json:"headers,omitempty" yaml:"headers,omitempty"`
	// Idle bounds the time without a byte of either body. Not set: 5m.
	Idle Duration `json:"idle,omitempty" yaml:"idle,omitempty"`
	// Total bounds the whole request. Not set: any time.
	Total Duration `json:"total,omitempty" yaml:"total,omitempty"`
}

// Duration is a time.Duration in the form "1m30s".
type Duration time.Duration

// UnmarshalText reads "1m30s".
func (d *Duration) UnmarshalText(text []byte) error {
	v, err := time.ParseDuration(string(text))
	if err != nil {
		return err
	}
	*d = Duration(v)
	return nil
}

// MarshalText writes "1m30s".
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// Position is the file and line of an object or of one of its fields, for faults.
type Position struct {
	File string
	Line int
}

// Project is a Project that was read.
type Project struct {
	Metadata Metadata
	Spec     ProjectSpec
	// At returns the position of a field such as "spec.projectId". Nil: the object is not from a file.
	At func(field string) Position
}

// Credential is a Credential that was read.
type Credential struct {
	Metadata Metadata
	Spec     CredentialSpec
	// At returns the position of a field such as "spec.destinations[1].pattern". Nil: the object is not from a file.
	At func(field string) Position
}

// ProxyEndpoint is a ProxyEndpoint that was read.
type ProxyEndpoint struct {
	Metadata Metadata
	Spec     ProxyEndpointSpec
	At       func(field string) Position
}

// Secret is a Secret that was read. Only credentials that name one of its values use it.
type Secret struct {
	Metadata Metadata
	Data     map[string][]byte
	At       func(field string) Position
}

// Objects are the input of a snapshot.
type Objects struct {
	Projects    []Project
	Credentials []Credential
	Endpoints   []ProxyEndpoint
	Secrets     []Secret
	// RequireProject refuses Credentials and ProxyEndpoints of a project that no Project declares.
	RequireProject bool
}

// Zero overwrites the Secrets' values.
func (o *Objects) Zero() {
	for _, s := range o.Secrets {
		for _, v := range s.Data {
			clear(v)
		}
	}
}
