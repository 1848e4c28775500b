// Package internal holds the schema that tells which fields of a stored object are whose. All but this file is
// generated.
package internal
