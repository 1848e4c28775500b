package apikey

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

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
// schema of another version allows. It also returns an error for an identity that the operator cannot grant. The result
// has the project even if there is an error. clusterIssuer is the issuer of the cluster's ServiceAccounts, or empty.
func wantOf(object *v1alpha1.APIKey, clusterIssuer string) (want, error) {
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
	if spec.Identity != nil {
		// A grant has no key to rotate. The grant of an earlier CLUSTER_ISSUER ends without an overlap.
		w.request, w.revoke, w.overlap, w.account = "", nil, 0, accountOf(object)
		w.identity, err = identityOf(object, clusterIssuer)
	}
	return w, err
}

// accountOf returns the ServiceAccount of an object that has spec.identity.serviceAccountRef, or the zero name.
func accountOf(object *v1alpha1.APIKey) types.NamespacedName {
	if object.Spec.Identity == nil || object.Spec.Identity.ServiceAccountRef == nil {
		return types.NamespacedName{}
	}
	account := object.Spec.Identity.ServiceAccountRef
	return types.NamespacedName{Namespace: cmp.Or(account.Namespace, object.Namespace), Name: account.Name}
}

// identityOf returns the identity of an object that has spec.identity, without the uid of a ServiceAccount. The error names the field and what is allowed.
func identityOf(object *v1alpha1.APIKey, clusterIssuer string) (auth.Identity, error) {
	spec := object.Spec.Identity
	identity := auth.Identity{Issuer: spec.Issuer, Subject: spec.Subject, Group: spec.Group}
	if account := accountOf(object); account.Name != "" {
		if clusterIssuer == "" {
			return auth.Identity{}, errors.New("spec.identity.serviceAccountRef: the operator has no CLUSTER_ISSUER; allowed without it: issuer and subject, or issuer and group")
		}
		identity = auth.Identity{Issuer: clusterIssuer, Subject: "system:serviceaccount:" + account.Namespace + ":" + account.Name}
	}
	if err := identity.Validate(); err != nil {
		return auth.Identity{}, fmt.Errorf("spec.identity: allowed: %w", err)
	}
	return identity, nil
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

// secretNameOf returns the name of the Secret that receives the key: spec.secret.name, or else the name of object. The
// result is empty for an object with an identity, which has no Secret.
func secretNameOf(object *v1alpha1.APIKey) string {
	if object.Spec.Identity != nil {
		return ""
	}
	if object.Spec.Secret.Name != "" {
		return object.Spec.Secret.Name
	}
	return object.Name
}
