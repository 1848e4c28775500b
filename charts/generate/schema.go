package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
)

// set matches a line of the schema with an enum of names: the settings of a component ("variables-NAME"), or the
// operations.
var set = regexp.MustCompile(`(?m)^(\s*"(variables-(\w+)|operations)": )\{.*\}(,?)$`)

// writeSchema fills two kinds of enums in the schema of the chart's values. These are the settings that each component reads,
// and the names of the operations.
func writeSchema() error {
	const file = "charts/lectern/values.schema.json"
	schema, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	settings, err := os.ReadFile("docs/reference/settings.md")
	if err != nil {
		return err
	}
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
		list, _ := json.Marshal(names) // a list of text
		return slices.Concat(m[1], []byte(`{"enum": `), list, []byte("}"), m[4])
	})
	if len(faults) > 0 {
		return errors.Join(faults...)
	}
	return os.WriteFile(file, filled, 0o644)
}

// row matches a row of the table of settings: a name in backquotes, and the programs that read the setting. row does
// not match secrets, whose rows have another form, because the chart's values do not contain secrets.
var row = regexp.MustCompile("(?m)^\\| `([A-Z][A-Z0-9_]*)` \\| ([^|]+) \\|")

// settingsByProgram returns the names of the settings that each program reads, by program. text is
// docs/reference/settings.md. Secrets are left out.
func settingsByProgram(text string) map[string][]string {
	names := map[string][]string{}
	for _, m := range row.FindAllStringSubmatch(text, -1) {
		for program := range strings.SplitSeq(m[2], ", ") {
			names[program] = append(names[program], m[1])
		}
	}
	return names
}

// chartOwns are settings that a user must not set, because the chart derives them from other values, such as the ports
// of Services.
var chartOwns = []string{"REDIS_REQUIRE_TLS", "WATCH_NAMESPACES", "UNDECLARED_PROJECTS", "LEASE_NAME", "FETCH_CREDENTIALS", "REGION_INTERNAL_URL", "LISTEN_PUBLIC", "LISTEN_INTERNAL", "DRAIN_DELAY", "DRAIN_TIMEOUT", "PROXY_MANIFESTS", "EDGE_SERVICES", "EDGE_EXCLUDE", "EDGE_PATHS", "TOKEN_ISSUERS", "INTERNAL_IDENTITIES", "CONSOLE_ISSUER", "CONSOLE_CLIENT_ID", "CONSOLE_SCOPES", "CONSOLE_AUDIENCE", "CONSOLE_ISSUER_ORIGINS"}

// settingsOf returns the names of the settings that a user may set for a component of the chart, sorted. read has the
// settings by program.
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
