// Package project owns the noun of the service, the project, and how it is written as JSON. It does no
// I/O.
package project

import (
	"strconv"

	"github.com/lectern-dev/lectern/shared/wire"
)

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
	dst = wire.AppendText(dst, []byte(id))
	dst = append(dst, `,"title":`...)
	dst = wire.AppendText(dst, title)
	return append(dst, '}')
}

// AppendAll appends a project as JSON with all that is kept of it, and the zone that it is in at a moment.
func AppendAll(dst []byte, p Project, zone string, offsetInMinutes int) []byte {
	dst = append(dst, `{"id":`...)
	dst = wire.AppendText(dst, []byte(p.ID))
	dst = append(dst, `,"title":`...)
	dst = wire.AppendText(dst, []byte(p.Title))
	dst = append(dst, `,"region":`...)
	if p.Region == nil {
		dst = append(dst, `null`...)
	} else {
		dst = wire.AppendText(dst, []byte(*p.Region))
	}
	dst = append(dst, `,"zone":`...)
	dst = wire.AppendText(dst, []byte(zone))
	dst = append(dst, `,"offsetInMinutes":`...)
	dst = strconv.AppendInt(dst, int64(offsetInMinutes), 10)
	return append(dst, '}')
}
