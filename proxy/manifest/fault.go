package manifest

import (
	"fmt"
	"strings"
)

// Cause is what kind of thing is wrong, for those who report on objects.
type Cause uint8

// The causes.
const (
	// Invalid: a field's value is not allowed.
	Invalid Cause = iota
	// Duplicate: an object before this one claims the same.
	Duplicate
	// SecretMissing: there is no Secret of that name in the Credential's namespace.
	SecretMissing
	// SecretKeyMissing: the Secret has no such key.
	SecretKeyMissing
	// ValueInvalid: the value in the Secret is empty or too long.
	ValueInvalid
	// CredentialMissing: an endpoint names a credential that its project and environment do not have, or that
	// belongs to another namespace and is not granted. The two are told alike, so that nobody can ask what others have.
	CredentialMissing
	// CredentialFaulty: an endpoint names a credential that is not in force itself.
	CredentialFaulty
	// NotGranted: the object's project belongs to another namespace, which does not list this one in
	// allowedNamespaces.
	NotGranted
	// NotDeclared: no Project declares the object's project, and one has to.
	NotDeclared
)

// ObjectKey names an object.
type ObjectKey struct{ Kind, Namespace, Name string }

// Fault is one thing that is wrong with manifests. It never holds a Secret's value.
type Fault struct {
	Place  Place
	Object string // kind/name
	Reason string // begins with the field
	// Of and Cause say the same for programs.
	Of    ObjectKey
	Cause Cause
}

// Error gives file, line, object and reason.
func (f *Fault) Error() string {
	var b strings.Builder
	if f.Place.File != "" {
		fmt.Fprintf(&b, "%s:%d: ", f.Place.File, f.Place.Line)
	}
	if f.Object != "" {
		b.WriteString(f.Object + ": ")
	}
	b.WriteString(f.Reason)
	return b.String()
}
