package apikey

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strings"
	"time"

	"github.com/lectern-dev/lectern/k8s/api/v1alpha1"
	"github.com/lectern-dev/lectern/shared/auth"
	"github.com/lectern-dev/lectern/shared/auth/pgkeys"
)

const (
	// defaultOverlap is the overlap of objects without a schedule. The schema has the same default for objects with a
	// schedule.
	defaultOverlap = time.Hour

	// longestRequest is the length in bytes up to which a value of lectern.dev/rotate is stored as it is. A longer
	// value is stored as a digest.
	longestRequest = 256

	// ownerPrefix begins the name of an owner. The namespace, a slash and the object's name follow.
	ownerPrefix = "APIKey "
)

// wantOf returns the desired state of an object. It returns an error for an unknown scope, which only an installed
// schema of another version allows. The result has the project even if there is an error.
func wantOf(object *v1alpha1.APIKey) (want, error) {
	spec := object.Spec
	w := want{
		project: spec.ProjectID,
		terms:   pgkeys.Terms{Name: object.Name, Rate: int(spec.Rate)},
		request: requestOf(object),
		revoke:  strings.FieldsFunc(object.Annotations[v1alpha1.AnnotationRevokeKeys], func(r rune) bool { return r == ',' || r == ' ' }),
		overlap: defaultOverlap,
	}
	if spec.ExpiresAt != nil {
		w.terms.ExpiresAt = spec.ExpiresAt.UTC()
	}
	names := make([]string, len(spec.Scopes))
	for i, scope := range spec.Scopes {
		names[i] = string(scope)
	}
	var err error
	if w.terms.Scopes, err = auth.ParseScopes(names...); err != nil {
		return w, errors.New("spec.scopes: " + err.Error())
	}
	if w.terms.Scopes == 0 {
		w.terms.Scopes = auth.DefaultScopes
	}
	if r := spec.Rotation; r != nil {
		w.every, w.overlap = r.Every.Duration, r.Overlap.Duration
	}
	return w, nil
}

// requestOf returns the value of lectern.dev/rotate. If the value has more than longestRequest bytes, the result is
// "sha256:" and the digest of the value in hexadecimal.
func requestOf(object *v1alpha1.APIKey) string {
	value := object.Annotations[v1alpha1.AnnotationRotate]
	if len(value) <= longestRequest {
		return strings.ToValidUTF8(value, "?")
	}
	sum := sha256.Sum256([]byte(value))
	return "sha256:" + hex.EncodeToString(sum[:])
}

// ownerOf returns the owner under which the key database stores the keys of object. The owner's id is the object's UID.
func ownerOf(realm string, object *v1alpha1.APIKey) auth.Owner {
	return auth.Owner{Realm: realm, ID: string(object.UID), Name: ownerPrefix + object.Namespace + "/" + object.Name}
}

// secretNameOf returns the name of the Secret that receives the key: spec.secret.name, or else the name of object.
func secretNameOf(object *v1alpha1.APIKey) string {
	if object.Spec.Secret.Name != "" {
		return object.Spec.Secret.Name
	}
	return object.Name
}
