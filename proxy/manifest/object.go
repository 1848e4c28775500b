// Package manifest reads endpoints and credentials from manifests, validates them, and turns them into policy. Package
// resource defines the fields of the kinds Credential, ProxyEndpoint and Project of lectern.dev/v1alpha1. A Project
// restricts which namespaces may have Credentials and ProxyEndpoints.
//
// The type [Folder] follows the changes of a folder of YAML files. A folder is applied whole or not at all: with one
// bad file, the previous policy stays in force. For objects that are independent of each other, [BuildEach] excludes
// only the faulty objects.
package manifest

import (
	"github.com/lectern-dev/lectern/proxy/policy"
	"github.com/lectern-dev/lectern/proxy/resource"
)

// APIVersion is the API version of Project, Credential and ProxyEndpoint.
const APIVersion = "lectern.dev/v1alpha1"

// Bounds of the lists and the certificates in one object.
const (
	MaxRules    = 256 // origins, destinations and credentials: each
	MaxMethods  = 32
	MaxPorts    = 64
	MaxHeaders  = 32
	MaxCABundle = 256 << 10 // bytes
)

// Metadata holds the name and the namespace of an object. In a folder of manifests, the namespace may be empty.
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

// Project is a Project from a manifest or a cluster, which [BuildEach] has not validated yet.
type Project struct {
	Metadata Metadata
	Spec     resource.ProjectSpec
	// At returns the position of a field such as "spec.projectId". Nil: the object is not from a file.
	At func(field string) Position
}

// Credential is a Credential from a manifest or a cluster, which [BuildEach] has not validated yet.
type Credential struct {
	Metadata Metadata
	Spec     resource.CredentialSpec
	// Former are former values. All endpoints that may use the Credential hide them.
	Former []policy.Former
	// At returns the position of a field such as "spec.destinations[1].pattern". Nil: the object is not from a file.
	At func(field string) Position
}

// ProxyEndpoint is a ProxyEndpoint from a manifest or a cluster, which [BuildEach] has not validated yet.
type ProxyEndpoint struct {
	Metadata Metadata
	Spec     resource.ProxyEndpointSpec
	// Former are values of Credentials that the endpoint may not use any more, which it hides.
	Former []policy.Former
	At     func(field string) Position
}

// Secret has the values of one Kubernetes Secret, by key. In a folder, Secret is read from a manifest. In a cluster,
// the caller fills Data with the keys that Credentials name. Other keys have no effect.
type Secret struct {
	Metadata Metadata
	Data     map[string][]byte
	At       func(field string) Position
}

// Objects holds all objects from which [Build] and [BuildEach] make a snapshot. Of two objects with the same name or
// id, the first object wins.
type Objects struct {
	Projects    []Project
	Credentials []Credential
	Endpoints   []ProxyEndpoint
	Secrets     []Secret
	// RequireProject refuses Credentials and ProxyEndpoints of a project that no Project declares.
	RequireProject bool
}
