// Package manifest reads endpoints and credentials from manifests, validates them, and turns them into policy. Package
// resource defines the fields of the kinds Credential and ProxyEndpoint of lectern.dev/v1alpha1, and of Project, which
// restricts them.
//
// It follows the changes of a folder of YAML files. A folder is applied whole or not at all: with one bad file, the
// previous policy stays in force. For objects that are independent of each other, [BuildEach] excludes only the faulty
// ones.
package manifest

import (
	"github.com/lectern-dev/lectern/proxy/resource"
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

// Position is the file and line of an object or of one of its fields, for faults.
type Position struct {
	File string
	Line int
}

// Project is a Project that was read.
type Project struct {
	Metadata Metadata
	Spec     resource.ProjectSpec
	// At returns the position of a field such as "spec.projectId". Nil: the object is not from a file.
	At func(field string) Position
}

// Credential is a Credential that was read.
type Credential struct {
	Metadata Metadata
	Spec     resource.CredentialSpec
	// At returns the position of a field such as "spec.destinations[1].pattern". Nil: the object is not from a file.
	At func(field string) Position
}

// ProxyEndpoint is a ProxyEndpoint that was read.
type ProxyEndpoint struct {
	Metadata Metadata
	Spec     resource.ProxyEndpointSpec
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
