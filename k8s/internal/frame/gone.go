package frame

import "k8s.io/apimachinery/pkg/api/errors"

// IgnoreGone returns nil when err says that the object is gone: there is nothing left to write. What is applied
// bears the object's UID, so that it never goes to another of the same name.
func IgnoreGone(err error) error {
	if errors.IsNotFound(err) {
		return nil
	}
	return err
}
