package openapitest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// schemas checks JSON against the schemas of a description as strictly as JSON Schema defines them. kin-openapi accepts a
// null wherever a schema is nullable, even if a part of its allOf is not. Few other validators do.
type schemas struct {
	components map[string]any // those of the description, by name, as JSON Schema

	mu       sync.Mutex
	compiled map[*openapi3.SchemaRef]*jsonschema.Schema
}

func newSchemas(components openapi3.Schemas) *schemas {
	all := map[string]any{}
	for name, s := range components {
		all[name] = strict(plain(s.Value))
	}
	return &schemas{components: all, compiled: map[*openapi3.SchemaRef]*jsonschema.Schema{}}
}

// faults returns the differences between JSON and a schema.
func (s *schemas) faults(what string, ref *openapi3.SchemaRef, text []byte) []string {
	compiled, err := s.compile(ref)
	if err != nil {
		return []string{"the schema of the " + what + ": " + err.Error()}
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return []string{what + " is not JSON: " + err.Error()}
	}
	if err := compiled.Validate(value); err != nil {
		_, fault, _ := strings.Cut(err.Error(), "\n") // the first line names the schema
		return []string{what + ": " + strings.TrimSpace(fault)}
	}
	return nil
}

func (s *schemas) compile(ref *openapi3.SchemaRef) (*jsonschema.Schema, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if found := s.compiled[ref]; found != nil {
		return found, nil
	}
	const address = "schema.json"
	document := map[string]any{"components": map[string]any{"schemas": s.components}, "allOf": []any{strict(plain(ref))}}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.AssertFormat()
	if err := c.AddResource(address, document); err != nil {
		return nil, err
	}
	compiled, err := c.Compile(address)
	if err != nil {
		return nil, err
	}
	s.compiled[ref] = compiled
	return compiled, nil
}

// plain returns a schema of OpenAPI as decoded JSON.
func plain(schema any) any {
	text, err := json.Marshal(schema)
	if err != nil {
		panic(fmt.Sprintf("openapitest: a schema is no JSON: %v", err))
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		panic(fmt.Sprintf("openapitest: a schema is no JSON: %v", err))
	}
	return value
}

// strict turns a schema of OpenAPI 3.0 into one of JSON Schema: nullable is a further type there.
func strict(schema any) any {
	switch s := schema.(type) {
	case []any:
		for i := range s {
			s[i] = strict(s[i])
		}
	case map[string]any:
		for name, value := range s {
			if name != "example" && name != "enum" && name != "default" {
				s[name] = strict(value)
			}
		}
		if kind, ok := s["type"].(string); ok && s["nullable"] == true {
			s["type"] = []any{kind, "null"}
		}
	}
	return schema
}
