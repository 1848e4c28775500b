package app_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
)

// object returns a manifest.
func object(kind, name string, spec any) string {
	api := "lectern.dev/v1alpha1"
	doc := map[string]any{"apiVersion": api, "kind": kind, "metadata": map[string]any{"name": name}, "spec": spec}
	b, err := json.Marshal(doc) // JSON is YAML
	if err != nil {
		panic(err)
	}
	return "---\n" + string(b) + "\n"
}

// m is a part of a manifest.
type m = map[string]any

func credential(id, projectID, environment, value string, further m) string {
	name := strings.ReplaceAll(id, "_", "-") + "-" + environment
	spec := m{"projectId": projectID, "environment": environment, "id": id, "valueFrom": m{"secretKeyRef": m{"name": name, "key": "value"}}}
	for k, v := range further {
		spec[k] = v
	}
	data := base64.StdEncoding.EncodeToString([]byte(value))
	return object("Credential", name, spec) +
		fmt.Sprintf("---\napiVersion: v1\nkind: Secret\nmetadata: {name: %s}\ndata: {value: %s}\n", name, data)
}
