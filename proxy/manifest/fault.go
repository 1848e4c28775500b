package manifest

import (
	"fmt"
	"strings"
)

// Cause is the kind of a fault, for programs that report it in an object's status.
type Cause uint8

// The causes.
const (
	// Invalid: a field's value is not allowed.
	Invalid Cause = iota
	// Duplicate: an earlier object has the same name or id.
	Duplicate
	// SecretMissing: there is no Secret of that name in the Credential's namespace.
	SecretMissing
	// SecretKeyMissing: the Secret has no such key.
	SecretKeyMissing
	// ValueInvalid: the value in the Secret is empty or too long.
	ValueInvalid
	// CredentialMissing: an endpoint names a credential that does not exist in its project and environment, or that
	// another namespace does not grant. Both have one text, so that a namespace cannot probe for the credentials of
	// others.
	CredentialMissing
	// CredentialFaulty: an endpoint names a credential that is not in force.
	CredentialFaulty
	// NotGranted: the object's project belongs to another namespace, which does not list this one in
	// allowedNamespaces.
	NotGranted
	// NotDeclared: no Project declares the object's project, although one is required.
	NotDeclared
)

// ObjectKey identifies an object.
type ObjectKey struct{ Kind, Namespace, Name string }

// Fault is one mistake in manifests. It never contains a Secret's value.
type Fault struct {
	Position Position
	Object   string // kind/name
	Reason   string // begins with the field
	// Of and Cause give the object and the kind of fault to programs.
	Of    ObjectKey
	Cause Cause
}

// Error returns file, line, object and reason.
func (f *Fault) Error() string {
	var b strings.Builder
	if f.Position.File != "" {
		fmt.Fprintf(&b, "%s:%d: ", f.Position.File, f.Position.Line)
	}
	if f.Object != "" {
		b.WriteString(f.Object + ": ")
	}
	b.WriteString(f.Reason)
	return b.String()
}
