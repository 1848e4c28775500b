// Package project defines projects, the records of the region service, and writes their JSON. The package does no I/O.
package project

import (
	"strconv"

	"github.com/lectern-dev/lectern/shared/wire"
)

// DefaultRegion is the zone with which the API answers for a project that has no region or is unknown.
const DefaultRegion = "America/Los_Angeles"

// Project is one customer or site, of which the region service stores the title and the region.
type Project struct {
	ID     string
	Title  string
	Region *string // a zone of the tz database; nil: none is set
}

// Append appends a project as JSON to dst, without its region, which is not public.
func Append(dst []byte, id string, title []byte) []byte {
	dst = append(dst, `{"id":`...)
	dst = wire.AppendText(dst, []byte(id))
	dst = append(dst, `,"title":`...)
	dst = wire.AppendText(dst, title)
	return append(dst, '}')
}

// AppendAll appends a project as JSON to dst, with all its fields, its zone and its offset in minutes.
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
