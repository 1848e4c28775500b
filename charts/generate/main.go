// Command generate writes the generated files of the chart lectern that need more than a copy. Routes come from shared/routes.
// The names of settings in the schema come from docs/reference/settings.md. The list of values comes from values.yaml. The
// argument is the root of the repository.
package main

import (
	"fmt"
	"os"
)

func main() {
	err := os.Chdir(os.Args[1])
	for _, write := range []func() error{writeRoutes, writeValues, writeSchema} {
		if err == nil {
			err = write()
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "charts/generate:", err)
		os.Exit(1)
	}
}
