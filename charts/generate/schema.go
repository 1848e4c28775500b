package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// set is a line of the schema that lists names: the variables of a component, or the operations.
var set = regexp.MustCompile(`(?m)^(\s*"(variables-(\w+)|operations)": )\{.*\}(,?)$`)

// fillSchema returns schema with the names of the variables that each component reads, out of the tables of
// operating, and the ids of the operations.
func fillSchema(schema, operating []byte) ([]byte, error) {
	tables, err := variableTables(string(operating))
	if err != nil {
		return nil, err
	}
	var faults []error
	filled := set.ReplaceAllFunc(schema, func(line []byte) []byte {
		m := set.FindSubmatch(line)
		names := operations()
		if component := string(m[3]); component != "" {
			if names = variablesOf(tables, component); len(names) == 0 {
				faults = append(faults, fmt.Errorf("docs/reference/configuration.md has no variables of %s", component))
			}
		}
		list, err := json.Marshal(names)
		if err != nil {
			faults = append(faults, err)
		}
		return slices.Concat(m[1], []byte(`{"enum": `), list, []byte("}"), m[4])
	})
	return filled, errors.Join(faults...)
}

// row is one of a table of variables: a line that begins with a name in backquotes.
var row = regexp.MustCompile("^\\| `([A-Z][A-Z0-9_]*)` \\|(.*)$")

// variableTables returns the names of the variables below each heading of the configuration's chapter, without
// secrets, which are no values of the chart.
func variableTables(text string) (map[string][]string, error) {
	_, chapter, ok := strings.Cut(text, "\n## Configuration\n")
	if !ok {
		return nil, errors.New("docs/reference/configuration.md has no chapter Configuration")
	}
	chapter, _, _ = strings.Cut(chapter, "\n## ")
	tables := map[string][]string{}
	heading := ""
	for line := range strings.Lines(chapter) {
		if title, ok := strings.CutPrefix(line, "### "); ok {
			heading = strings.TrimPrefix(strings.TrimSpace(title), "The ")
		}
		m := row.FindStringSubmatch(strings.TrimSpace(line))
		if m == nil || strings.Contains(m[2], "Secret: `") {
			continue
		}
		tables[heading] = append(tables[heading], m[1])
	}
	return tables, nil
}

// chartOwns are variables that the chart sets from other values. Examples are names, the ports of Services and the time
// that a pod has to stop.
var chartOwns = []string{"REDIS_REQUIRE_TLS", "WATCH_NAMESPACES", "UNDECLARED_PROJECTS", "LEASE_NAME", "REGION_INTERNAL_URL", "LISTEN_PUBLIC", "LISTEN_INTERNAL", "DRAIN_DELAY", "DRAIN_TIMEOUT", "PROXY_MANIFESTS", "EDGE_SERVICES", "EDGE_EXCLUDE"}

// variablesOf returns the names that component reads, sorted.
func variablesOf(tables map[string][]string, component string) []string {
	names := slices.Clone(tables[component])
	for _, name := range tables["Every data service"] {
		// All that runs has logs and traces, and the other tables are complete.
		if !slices.Contains([]string{"operator", "proxy", "console", "edge"}, component) || strings.HasPrefix(name, "LOG_") || strings.HasPrefix(name, "OTEL_") {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	names = slices.Compact(names)
	return slices.DeleteFunc(names, func(name string) bool { return slices.Contains(chartOwns, name) })
}
