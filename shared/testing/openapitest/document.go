// Package openapitest compares the answers of running services with the published description. It checks the status,
// headers and body of each answer, and the parameters of each operation.
//
// Production code does not import it; the linter checks this.
package openapitest

import (
	"fmt"
	"net/http"
	"strings"
	"sync"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/lectern-dev/lectern/shared/openapi"
	"github.com/lectern-dev/lectern/shared/routes"
)

// Document is a description, with stricter rules: an object has only the described fields. (Clients should
// accept more.)
type Document struct {
	*openapi3.T
	schemas *schemas
}

// Load returns the published description. It parses it once for each process.
func Load() (*Document, error) { return published() }

// LoadInternal returns the description of the internal paths. It parses it once for each process.
func LoadInternal() (*Document, error) { return internal() }

var (
	published = sync.OnceValues(func() (*Document, error) { return parse(openapi.YAML()) })
	internal  = sync.OnceValues(func() (*Document, error) { return parse(openapi.InternalYAML()) })
)

func parse(text []byte) (*Document, error) {
	d, err := openapi3.NewLoader().LoadFromData(text)
	if err != nil {
		return nil, fmt.Errorf("openapitest: %w", err)
	}
	closed := false
	for _, s := range d.Components.Schemas {
		if len(s.Value.Properties) > 0 && s.Value.AdditionalProperties.Schema == nil {
			s.Value.AdditionalProperties = openapi3.AdditionalProperties{Has: &closed}
		}
	}
	return &Document{d, newSchemas(d.Components.Schemas)}, nil
}

// Operation returns the description of a method of a route. HEAD has the description of GET. A route that serves any
// method is described by its GET, unless it describes the method.
func (d *Document) Operation(r routes.Route, method string) *openapi3.Operation {
	item := d.Paths.Value(r.Template)
	if item == nil {
		return nil
	}
	if method == http.MethodHead {
		method = http.MethodGet
	}
	if op := item.GetOperation(method); op != nil || r.Methods != nil {
		return op
	}
	return item.Get
}

// Query returns the query parameters of a route's operation, by name.
func (d *Document) Query(r routes.Route, method string) map[string]*openapi3.Parameter {
	found := map[string]*openapi3.Parameter{}
	op := d.Operation(r, method)
	if op == nil {
		return found
	}
	for _, list := range []openapi3.Parameters{d.Paths.Value(r.Template).Parameters, op.Parameters} {
		for _, p := range list {
			if p.Value.In == openapi3.ParameterInQuery {
				found[p.Value.Name] = p.Value
			}
		}
	}
	return found
}

// ExamplePath returns a route's path, with the described examples for its variables.
func (d *Document) ExamplePath(r routes.Route) string {
	path := r.Template
	if item := d.Paths.Value(r.Template); item != nil {
		for _, p := range item.Parameters {
			if p.Value.In == openapi3.ParameterInPath {
				path = strings.ReplaceAll(path, "{"+p.Value.Name+"}", fmt.Sprint(p.Value.Example))
			}
		}
	}
	return path
}
