package controller

import "k8s.io/apimachinery/pkg/api/errors"

// IgnoreGone returns nil if err is NotFound, because a deleted object needs no status, and otherwise err. Callers apply
// with the object's UID, so no write reaches another object of the same name.
func IgnoreGone(err error) error {
	if errors.IsNotFound(err) {
		return nil
	}
	return err
}
