package manifest

import (
	"fmt"
	"strings"
)

// Cause is the kind of a fault, for programs that report it in an object's status.
type Cause uint8

// The causes of faults.
const (
	// Invalid: a field's value is not allowed.
	Invalid Cause = iota
	// Duplicate: an earlier object has the same name or id.
	Duplicate
	// SecretMissing: the Credential's namespace has no Secret with the name in secretKeyRef.
	SecretMissing
	// SecretKeyMissing: the Credential's Secret has no key with the name in secretKeyRef.
	SecretKeyMissing
	// ValueInvalid: the value in the Secret is empty or too long, or no header can hold a value that only headers may
	// hold.
	ValueInvalid
	// CredentialMissing: an endpoint names a credential that does not exist in its project and environment, or that
	// another namespace does not grant. Both cases have one text, so that a namespace cannot probe for the credentials
	// of other namespaces.
	CredentialMissing
	// CredentialFaulty: an endpoint names a credential that is not in force.
	CredentialFaulty
	// NotGranted: the object's project belongs to another namespace, whose Project does not list the object's namespace
	// in allowedNamespaces.
	NotGranted
	// NotDeclared: no Project declares the object's project, although one is required.
	NotDeclared
)

// ObjectKey identifies an object in a folder or a cluster. Namespace is empty if a manifest names none.
type ObjectKey struct{ Kind, Namespace, Name string }

// Fault is one mistake in an object or a manifest file. A Fault never contains a Secret's value, so logs and statuses
// may show it.
type Fault struct {
	Position Position
	Object   string // kind/name, as far as they are known
	Reason   string // begins with the field if the fault is of one
	// Of and Cause give the object and the kind of fault to programs.
	Of    ObjectKey
	Cause Cause
}

// Error returns the file and line if they are known, the object, and the reason.
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
