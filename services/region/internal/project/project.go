// Package project owns the noun of the service, the project, and how it is written as JSON. It does no
// I/O.
package project

import "github.com/lectern-dev/lectern/shared/httpapi"

// DefaultRegion is the region of a project that has none, or is not known here.
const DefaultRegion = "America/Los_Angeles"

// Project hosts flows. Only its title and region are kept here.
type Project struct {
	ID     string
	Title  string
	Region *string // a zone of the tz database; nil: none is set
}

// Append appends a project as JSON, without its region, which is not public.
func Append(dst []byte, id string, title []byte) []byte {
	dst = append(dst, `{"id":`...)
	dst = httpapi.AppendText(dst, []byte(id))
	dst = append(dst, `,"title":`...)
	dst = httpapi.AppendText(dst, title)
	return append(dst, '}')
}
