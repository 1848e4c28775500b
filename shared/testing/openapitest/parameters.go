package openapitest

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/lectern-dev/lectern/shared/apierr"
	"github.com/lectern-dev/lectern/shared/routes"
)

// Ask sends a GET of a path to a running service, with a key that may read everything in it.
type Ask func(path string) Answer

// ServiceFaults probes the routes and query parameters of a running service. It returns the differences from the table
// of routes and the description. The service must serve exactly its own routes, and accept exactly the described
// parameters and values.
func (d *Document) ServiceFaults(service routes.Service, ask Ask) []string {
	var faults []string
	for _, r := range routes.Public() {
		path := d.ExamplePath(r)
		a := ask(path)
		if served := code(a) != apierr.RouteNotFound || r.Operation == "getReferenceAsset" && r.Service == service; served != (r.Service == service) {
			faults = append(faults, fmt.Sprintf("%s: %s is %s's, and is answered %d here", service, path, r.Service, a.Status))
			continue
		}
		if r.Service == service && r.Allows(http.MethodGet) && r.Methods != nil {
			for _, f := range d.parameterFaults(r, path, ask) {
				faults = append(faults, r.Operation+": "+f)
			}
		}
	}
	return faults
}

var allowedNames = regexp.MustCompile(`allowed: one of the parameters (.*)\.$`)

func (d *Document) parameterFaults(r routes.Route, path string, ask Ask) []string {
	described := d.Query(r, http.MethodGet)
	a := ask(path + "?no_such_parameter=1")
	m := allowedNames.FindStringSubmatch(message(a))
	if code(a) != apierr.InvalidParameter || m == nil {
		return []string{fmt.Sprintf("an unknown parameter is answered %d %.200s", a.Status, a.Body)}
	}
	known := []string{}
	if m[1] != "(none)" {
		known = strings.Split(m[1], ", ")
	}
	slices.Sort(known)
	var faults []string
	if want := slices.Sorted(maps.Keys(described)); !slices.Equal(known, want) {
		faults = append(faults, fmt.Sprintf("takes the parameters %q and is described to take %q", known, want))
	}
	for name, p := range described {
		path := path + "?"
		for other, p := range described {
			if p.Required && other != name {
				path += other + "=" + url.QueryEscape(fmt.Sprint(p.Example)) + "&"
			}
		}
		for _, value := range valuesOf(p) {
			query := path + name + "=" + url.QueryEscape(value)
			a := ask(query)
			if needed := parameter(a); described[needed] != nil && needed != name { // the one needs a value of the other
				for _, value := range valuesOf(described[needed]) {
					if a = ask(query + "&" + needed + "=" + url.QueryEscape(value)); a.Status != http.StatusBadRequest {
						break
					}
				}
			}
			if a.Status == http.StatusBadRequest {
				faults = append(faults, fmt.Sprintf("refuses the described %s=%s: %.200s", name, value, a.Body))
			}
		}
		for _, value := range outside(p.Schema.Value) {
			if a := ask(path + name + "=" + url.QueryEscape(value)); code(a) != apierr.InvalidParameter {
				faults = append(faults, fmt.Sprintf("answers %d to %s=%s, which is not described", a.Status, name, value))
			}
		}
	}
	slices.Sort(faults)
	return faults
}

// valuesOf returns described values of p. It returns no cursors: only the service can create them.
func valuesOf(p *openapi3.Parameter) []string {
	var values []string
	add := func(v any) {
		if v != nil {
			values = append(values, fmt.Sprint(v))
		}
	}
	s := p.Schema.Value
	add(p.Example)
	add(s.Default)
	for _, v := range s.Enum {
		add(v)
	}
	for _, bound := range []*float64{s.Min, s.Max} {
		if bound != nil {
			add(int64(*bound))
		}
	}
	if s.Type.Is("boolean") {
		values = append(values, "true", "false")
	}
	return values
}

// outside returns values that s does not describe.
func outside(s *openapi3.Schema) []string {
	values := []string{"", "no such value"}
	if s.MaxLength != nil { // any text up to that length is allowed
		values = []string{"", strings.Repeat("x", int(*s.MaxLength)+1)}
	}
	if s.Min != nil {
		values = append(values, fmt.Sprint(int64(*s.Min)-1))
	}
	if s.Max != nil {
		values = append(values, fmt.Sprint(int64(*s.Max)+1))
	}
	return values
}

type errorBody struct {
	Error struct {
		Code    apierr.Code
		Message string
	}
	Parameter string
}

// parameter returns the name of the parameter that a refusal is about, or "".
func parameter(a Answer) string {
	var body errorBody
	_ = json.Unmarshal(a.Body, &body) // another answer is about none
	return body.Parameter
}

func code(a Answer) apierr.Code {
	var b errorBody
	if json.Unmarshal(a.Body, &b) != nil {
		return ""
	}
	return b.Error.Code
}

func message(a Answer) string {
	var b errorBody
	if json.Unmarshal(a.Body, &b) != nil {
		return ""
	}
	return b.Error.Message
}
