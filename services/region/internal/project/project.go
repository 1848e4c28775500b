// Package project owns the noun of the service, the project, and its JSON. It does no I/O.
package project

import (
	"strconv"

	"github.com/lectern-dev/lectern/shared/wire"
)

// DefaultRegion is the region of a project that has none or is unknown.
const DefaultRegion = "America/Los_Angeles"

// Project hosts flows. This service keeps only its title and region.
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

// AppendAll appends a project as JSON with all its fields, and its zone and offset.
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
