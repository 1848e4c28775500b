package main

import (
	"bytes"
	"fmt"

	"github.com/lectern-dev/lectern/shared/routes"
)

// routesFile is the table of the routes from outside as the chart's templates read it.
func routesFile() []byte {
	var b bytes.Buffer
	b.WriteString("# Which path goes to which service. Generated from shared/routes: do not edit.\nroutes:\n")
	for _, r := range routes.Outside() {
		fmt.Fprintf(&b, "  - {service: %s, operation: %s, pattern: %q}\n", r.Service, r.Operation, routes.Regexp(r.Template))
	}
	return b.Bytes()
}

// operations are the names of all operations and pages that are routed from outside, in the order of the table.
func operations() []string {
	var ids []string
	for _, r := range routes.Outside() {
		ids = append(ids, r.Operation)
	}
	return ids
}
