package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// set is a line of the schema that lists names: the settings of a component, or the operations.
var set = regexp.MustCompile(`(?m)^(\s*"(variables-(\w+)|operations)": )\{.*\}(,?)$`)

// fillSchema returns schema with the names of the settings that each component reads, out of the table in settings, and
// the ids of the operations.
func fillSchema(schema, settings []byte) ([]byte, error) {
	read := settingsByProgram(string(settings))
	var faults []error
	filled := set.ReplaceAllFunc(schema, func(line []byte) []byte {
		m := set.FindSubmatch(line)
		names := operations()
		if component := string(m[3]); component != "" {
			if names = settingsOf(read, component); len(names) == 0 {
				faults = append(faults, fmt.Errorf("docs/reference/settings.md has no settings of %s", component))
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

// row is a row of the table of settings: a name in backquotes and the programs that read it. The rows of secrets,
// which are no values of the chart, have another form.
var row = regexp.MustCompile("(?m)^\\| `([A-Z][A-Z0-9_]*)` \\| ([^|]+) \\|")

// settingsByProgram returns the names of the settings that each program reads, without secrets.
func settingsByProgram(text string) map[string][]string {
	names := map[string][]string{}
	for _, m := range row.FindAllStringSubmatch(text, -1) {
		for program := range strings.SplitSeq(m[2], ", ") {
			names[program] = append(names[program], m[1])
		}
	}
	return names
}

// chartOwns are settings that the chart sets from other values. Examples are names, the ports of Services and the time
// that a pod has to stop.
var chartOwns = []string{"REDIS_REQUIRE_TLS", "WATCH_NAMESPACES", "UNDECLARED_PROJECTS", "LEASE_NAME", "REGION_INTERNAL_URL", "LISTEN_PUBLIC", "LISTEN_INTERNAL", "DRAIN_DELAY", "DRAIN_TIMEOUT", "PROXY_MANIFESTS", "EDGE_SERVICES", "EDGE_EXCLUDE", "EDGE_PATHS"}

// settingsOf returns the names that component reads, sorted.
func settingsOf(read map[string][]string, component string) []string {
	program := component
	if component == "internal" {
		program = "edge"
	}
	names := slices.Clone(read[program])
	if slices.Contains([]string{"entries", "embeddables", "experiments", "region"}, component) {
		names = append(names, read["data services"]...)
	}
	slices.Sort(names)
	names = slices.Compact(names)
	return slices.DeleteFunc(names, func(name string) bool { return slices.Contains(chartOwns, name) })
}
