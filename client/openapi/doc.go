// Package openapi holds no code: its tests make clients of the published description by generators that
// are not ours, and call every operation with them.
package openapi
