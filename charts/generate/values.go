package main

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"slices"

	"go.yaml.in/yaml/v3"
)

// writeValues writes the chart's file values.yaml, which lists the names of the chart's values, at the first and second
// level. Strings, nulls and empty lists are left out, because the chart treats an absent one as empty.
func writeValues() error {
	values, err := os.ReadFile("charts/lectern/values.yaml")
	if err != nil {
		return err
	}
	var all map[string]any
	if err := yaml.Unmarshal(values, &all); err != nil {
		return err
	}
	var b bytes.Buffer
	b.WriteString("# Values that the chart cannot do without. Generated from values.yaml: do not edit.\nvalues:\n")
	add := func(path string, value any) {
		if list, ok := value.([]any); ok && len(list) == 0 {
			return
		}
		if _, text := value.(string); !text && value != nil {
			fmt.Fprintf(&b, "  - %s\n", path)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		add(name, all[name])
		if below, ok := all[name].(map[string]any); ok {
			for _, inner := range slices.Sorted(maps.Keys(below)) {
				add(name+"."+inner, below[inner])
			}
		}
	}
	return os.WriteFile("charts/lectern/files/values.yaml", b.Bytes(), 0o644)
}
