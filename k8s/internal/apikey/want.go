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
	// defaultOverlap is that of the schema, for objects without a schedule.
	defaultOverlap = time.Hour

	// longestRequest is how much of the annotation lectern.dev/rotate is kept as it is.
	longestRequest = 256

	// ownerPrefix begins an owner's name; its namespace and a slash follow.
	ownerPrefix = "APIKey "
)

// wantOf reads what an object asks for. The schema sees to what an error says, unless it is of another version:
// then the project is given all the same.
func wantOf(object *v1alpha1.APIKey) (want, error) {
	spec := object.Spec
	w := want{
		project: spec.Project,
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

// requestOf is the value of lectern.dev/rotate, or a digest of one that is long.
func requestOf(object *v1alpha1.APIKey) string {
	value := object.Annotations[v1alpha1.AnnotationRotate]
	if len(value) <= longestRequest {
		return strings.ToValidUTF8(value, "?")
	}
	sum := sha256.Sum256([]byte(value))
	return "sha256:" + hex.EncodeToString(sum[:])
}

// ownerOf is whom an object's keys belong to in the database.
func ownerOf(realm string, object *v1alpha1.APIKey) auth.Owner {
	return auth.Owner{Realm: realm, ID: string(object.UID), Name: ownerPrefix + object.Namespace + "/" + object.Name}
}

// secretNameOf is the name of an object's Secret.
func secretNameOf(object *v1alpha1.APIKey) string {
	if object.Spec.Secret.Name != "" {
		return object.Spec.Secret.Name
	}
	return object.Name
}
