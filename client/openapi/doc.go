// Package openapi only has tests. They generate clients from the published API description with third-party generators,
// and call every operation with them.
package openapi
