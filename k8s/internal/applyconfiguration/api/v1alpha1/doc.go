// Package v1alpha1 holds the configurations that server-side apply takes of the kinds of lectern.dev/v1alpha1: what
// is not set is not claimed. All but this file is generated.
package v1alpha1
