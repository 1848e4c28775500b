package main

import (
	"bytes"
	"fmt"
	"os"

	"github.com/lectern-dev/lectern/shared/routes"
)

// writeRoutes writes the chart's file routes.yaml: each public route with its service, operation and pattern. The chart's
// templates read the file.
func writeRoutes() error {
	var b bytes.Buffer
	b.WriteString("# Which path goes to which service. Generated from shared/routes: do not edit.\nroutes:\n")
	for _, r := range routes.Outside() {
		fmt.Fprintf(&b, "  - {service: %s, operation: %s, pattern: %q}\n", r.Service, r.Operation, routes.Regexp(r.Template))
	}
	return os.WriteFile("charts/lectern/files/routes.yaml", b.Bytes(), 0o644)
}

// operations returns the names of all operations and pages that have a public route, in the order of [routes.Outside].
func operations() []string {
	var ids []string
	for _, r := range routes.Outside() {
		ids = append(ids, r.Operation)
	}
	return ids
}
