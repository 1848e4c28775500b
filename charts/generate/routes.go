package main

import (
	"bytes"
	"fmt"

	"github.com/lectern-dev/lectern/shared/routes"
)

// routesFile is the table of public routes as the chart's templates read it.
func routesFile() []byte {
	var b bytes.Buffer
	b.WriteString("# Which path goes to which service. Generated from shared/routes: do not edit.\nroutes:\n")
	for _, r := range routes.Public() {
		fmt.Fprintf(&b, "  - {service: %s, operation: %s, pattern: %q}\n", r.Service, r.Operation, routes.Regexp(r.Template))
	}
	return b.Bytes()
}

// operations are the ids of the public operations, in the order of the description.
func operations() []string {
	var ids []string
	for _, r := range routes.Public() {
		ids = append(ids, r.Operation)
	}
	return ids
}
