// Package openapi only has tests. The tests generate clients from the published API description with third-party
// generators, and call every operation with each client.
package openapi
