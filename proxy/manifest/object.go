// Package manifest owns endpoints and credentials as they are written down: the fields of the kinds
// Credential and ProxyEndpoint of lectern.dev/v1alpha1, and of Project as far as it says who may have them;
// what they mean as policy; and a folder of YAML files that is read again when it changes. Of a folder it takes
// all or nothing: one bad file, and what was in force stays. Where each object stands for itself, [BuildEach]
// keeps out those that are faulty.
package manifest

import (
	"time"
)

// APIVersion is that of Project, Credential and ProxyEndpoint.
const APIVersion = "lectern.dev/v1alpha1"

// What one object may hold at most.
const (
	MaxRules    = 256 // origins, destinations, credentials: of each
	MaxMethods  = 32
	MaxPorts    = 64
	MaxHeaders  = 32
	MaxCABundle = 256 << 10 // bytes
)

// Metadata names an object.
type Metadata struct {
	Name      string `json:"name" yaml:"name"`
	Namespace string `json:"namespace,omitempty" yaml:"namespace,omitempty"`
	// Labels and Annotations mean nothing here.
	Labels      map[string]string `json:"labels,omitempty" yaml:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty" yaml:"annotations,omitempty"`
}

// ProjectSpec is the spec of a Project. Only whose it is matters here: the rest is the region service's.
type ProjectSpec struct {
	// ProjectID is what objects name as their project. Required.
	ProjectID string `json:"projectId" yaml:"projectId"`
	// Title, Region, DeletionPolicy and RetentionDays mean nothing here.
	Title          string `json:"title" yaml:"title"`
	Region         string `json:"region,omitempty" yaml:"region,omitempty"`
	DeletionPolicy string `json:"deletionPolicy,omitempty" yaml:"deletionPolicy,omitempty"`
	RetentionDays  int32  `json:"retentionDays,omitempty" yaml:"retentionDays,omitempty"`
	// AllowedNamespaces are those, beside the Project's own, whose objects may be of the project; "*" for all.
	AllowedNamespaces []string `json:"allowedNamespaces,omitempty" yaml:"allowedNamespaces,omitempty"`
}

// CredentialSpec is the spec of a Credential: a value, and where it may go.
type CredentialSpec struct {
	// Project and Environment are those whose endpoints may use it. Required.
	Project     string `json:"project" yaml:"project"`
	Environment string `json:"environment" yaml:"environment"`
	// ID is what placeholders name: "cred_" and 1 to 64 letters, digits, "_" or "-"; unique among the Credentials
	// of a namespace for one project and environment. Required.
	ID string `json:"id" yaml:"id"`
	// ValueFrom says where the value is. Required.
	ValueFrom ValueSource `json:"valueFrom" yaml:"valueFrom"`
	// Destinations narrow where the value may go, beside the endpoint's. None: they do not.
	Destinations []RuleSpec `json:"destinations,omitempty" yaml:"destinations,omitempty"`
	// Places narrow what part of a request may hold it: header, url, body. None: any.
	Places []string `json:"places,omitempty" yaml:"places,omitempty"`
	// Headers narrow which headers may hold it. None: any. With headers and no places, no other part of a request
	// may hold it.
	Headers []string `json:"headers,omitempty" yaml:"headers,omitempty"`
	// AllowedNamespaces are those, beside the Credential's own, whose endpoints may use it; "*" for all.
	AllowedNamespaces []string `json:"allowedNamespaces,omitempty" yaml:"allowedNamespaces,omitempty"`
}

// ValueSource says where a credential's value is.
type ValueSource struct {
	SecretKeyRef SecretKeyRef `json:"secretKeyRef" yaml:"secretKeyRef"`
}

// SecretKeyRef names a key of a Secret in the same namespace.
type SecretKeyRef struct {
	Name string `json:"name" yaml:"name"`
	Key  string `json:"key" yaml:"key"`
}

// RuleSpec allows a domain (it and all its subdomains, https on its default port) or what a pattern matches
// whole (RE2). Exactly one is set.
type RuleSpec struct {
	Domain  string `json:"domain,omitempty" yaml:"domain,omitempty"`
	Pattern string `json:"pattern,omitempty" yaml:"pattern,omitempty"`
}

// ProxyEndpointSpec is the spec of a ProxyEndpoint: who may send what where.
type ProxyEndpointSpec struct {
	// Project and Environment are what requests name in X-Project-ID and X-Environment. Required.
	Project     string `json:"project" yaml:"project"`
	Environment string `json:"environment" yaml:"environment"`
	// Access is origin (the default: what browsers enforce, and others can forge) or key.
	Access string `json:"access,omitempty" yaml:"access,omitempty"`
	// Origins are allowed. At least one with access origin; with access key, requests without Origin are
	// allowed whatever stands here.
	Origins []RuleSpec `json:"origins,omitempty" yaml:"origins,omitempty"`
	// Destinations are allowed. At least one.
	Destinations []RuleSpec `json:"destinations" yaml:"destinations"`
	// Methods are allowed. None: all.
	Methods []string `json:"methods,omitempty" yaml:"methods,omitempty"`
	// Credentials are the ids that may be used.
	Credentials []string `json:"credentials,omitempty" yaml:"credentials,omitempty"`
	// Ports are allowed. None: 443, and 80 with allowHTTP.
	Ports []int `json:"ports,omitempty" yaml:"ports,omitempty"`
	// AllowHTTP lets credentials go over http, readable on the way.
	AllowHTTP bool `json:"allowHTTP,omitempty" yaml:"allowHTTP,omitempty"`
	// Scrub says how answers are searched for the endpoint's credentials.
	Scrub ScrubSpec `json:"scrub,omitempty" yaml:"scrub,omitempty"`
	// CABundle holds, as PEM, the only authorities that the targets' certificates may come from. Empty: the
	// system's.
	CABundle string `json:"caBundle,omitempty" yaml:"caBundle,omitempty"`
	// Limits bound what callers can ask for.
	Limits LimitsSpec `json:"limits,omitempty" yaml:"limits,omitempty"`
	// Timeouts bound how long that may take.
	Timeouts TimeoutsSpec `json:"timeouts,omitempty" yaml:"timeouts,omitempty"`
}

// ScrubSpec says how answers are searched for the endpoint's credentials.
type ScrubSpec struct {
	// Disabled passes answers unsearched.
	Disabled bool `json:"disabled,omitempty" yaml:"disabled,omitempty"`
	// PassUnreadable passes answers in encodings that cannot be searched, instead of refusing them.
	PassUnreadable bool `json:"passUnreadable,omitempty" yaml:"passUnreadable,omitempty"`
}

// LimitsSpec bounds what an endpoint's callers can ask for.
type LimitsSpec struct {
	// RequestsPerSecond for all callers together. 0: any number.
	RequestsPerSecond int `json:"requestsPerSecond,omitempty" yaml:"requestsPerSecond,omitempty"`
	// Burst is how many may come at once after a time of none. 0: twice RequestsPerSecond.
	Burst int `json:"burst,omitempty" yaml:"burst,omitempty"`
	// Concurrent is how many may run at a time in one process. 0: 256.
	Concurrent int `json:"concurrent,omitempty" yaml:"concurrent,omitempty"`
	// RequestBytes bounds a request's body. 0: any size.
	RequestBytes int64 `json:"requestBytes,omitempty" yaml:"requestBytes,omitempty"`
	// ResponseBytes bounds an answer's body. 0: any size.
	ResponseBytes int64 `json:"responseBytes,omitempty" yaml:"responseBytes,omitempty"`
}

// TimeoutsSpec bounds how long the phases of a request may take.
type TimeoutsSpec struct {
	// Connect to the target, with TLS. Not set: 10s.
	Connect Duration `json:"connect,omitempty" yaml:"connect,omitempty"`
	// Headers: from the end of the request to the beginning of the answer. Not set: 60s.
	Headers Duration `json:"headers,omitempty" yaml:"headers,omitempty"`
	// Idle: without a byte of either body. Not set: 5m.
	Idle Duration `json:"idle,omitempty" yaml:"idle,omitempty"`
	// Total: all of it. Not set: any time.
	Total Duration `json:"total,omitempty" yaml:"total,omitempty"`
}

// Duration is a time.Duration that is written as "1m30s".
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

// Place is where an object, or a part of one, was read: for faults.
type Place struct {
	File string
	Line int
}

// Project is a Project that was read.
type Project struct {
	Metadata Metadata
	Spec     ProjectSpec
	// At tells where a field stands: "spec.projectId". Nil: nobody knows.
	At func(field string) Place
}

// Credential is a Credential that was read.
type Credential struct {
	Metadata Metadata
	Spec     CredentialSpec
	// At tells where a field stands: "spec.destinations[1].pattern". Nil: nobody knows.
	At func(field string) Place
}

// ProxyEndpoint is a ProxyEndpoint that was read.
type ProxyEndpoint struct {
	Metadata Metadata
	Spec     ProxyEndpointSpec
	At       func(field string) Place
}

// Secret is a Secret that was read. Its values are only looked at through the credentials that name them.
type Secret struct {
	Metadata Metadata
	Data     map[string][]byte
	At       func(field string) Place
}

// Objects is what a snapshot is made of.
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
