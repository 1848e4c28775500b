package openapitest_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/google/go-cmp/cmp"

	"github.com/lectern-dev/lectern/shared/apierr"
	"github.com/lectern-dev/lectern/shared/routes"
	"github.com/lectern-dev/lectern/shared/testing/openapitest"
)

func document(t testing.TB) *openapitest.Document {
	t.Helper()
	d, err := openapitest.Load()
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestDescriptionIsValid(t *testing.T) {
	d := document(t)
	if err := d.Validate(t.Context(), openapi3.EnableExamplesValidation(), openapi3.EnableSchemaFormatValidation()); err != nil {
		t.Error(err)
	}
	if d.OpenAPI != "3.0.3" {
		t.Errorf("openapi %s", d.OpenAPI)
	}
}

// TestRoutesAreDescribed checks that every route is described, with its own operation, and that no other operation is
// described.
func TestRoutesAreDescribed(t *testing.T) {
	d := document(t)
	want, got := map[string]string{}, map[string]string{}
	for _, r := range routes.Public() {
		for _, m := range r.Methods {
			if m != http.MethodHead { // the description of GET includes HEAD
				want[m+" "+r.Template] = r.Operation
			}
		}
		if r.Methods == nil {
			for _, m := range []string{"GET", "POST", "PUT", "PATCH", "DELETE"} {
				want[m+" "+r.Template] = r.Operation + m[:1] + strings.ToLower(m[1:])
			}
		}
	}
	for path, item := range d.Paths.Map() {
		for m, op := range item.Operations() {
			got[m+" "+path] = op.OperationID
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("routes (-table +description):\n%s", diff)
	}
}

// TestInternalPathsAreDescribed checks that the internal description has exactly the internal paths, each with its
// methods and its kind of key.
func TestInternalPathsAreDescribed(t *testing.T) {
	d, err := openapitest.LoadInternal()
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Validate(t.Context(), openapi3.EnableExamplesValidation(), openapi3.EnableSchemaFormatValidation()); err != nil {
		t.Error(err)
	}
	schemes := map[routes.Auth]string{routes.IngestKey: "IngestKey", routes.AdminKey: "AdminKey", routes.InternalKey: "InternalKey"}
	want, got := map[string]string{}, map[string]string{}
	for _, r := range routes.Inside() {
		for _, m := range r.Methods {
			if m != http.MethodHead {
				want[m+" "+r.Template] = schemes[r.Auth]
			}
		}
	}
	for path, item := range d.Paths.Map() {
		for m, op := range item.Operations() {
			for _, requirement := range *op.Security {
				for scheme := range requirement {
					got[m+" "+path] += scheme
				}
			}
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("routes (-table +description):\n%s", diff)
	}
}

// TestSecurityIsDescribed checks that the description and the table of routes require the same keys for each operation.
func TestSecurityIsDescribed(t *testing.T) {
	d := document(t)
	for _, r := range routes.Public() {
		want := map[routes.Auth][]string{
			routes.None:        {},
			routes.APIKey:      {"ApiKey", "Token"},
			routes.AnyKey:      {"ApiKey", "Token"},
			routes.Configured:  {"", "ApiKey", "Token"},
			routes.InternalKey: {"InternalKey", "Token"},
			routes.Endpoint:    {"", "ProxyKey"},
		}[r.Auth]
		for m, op := range d.Paths.Value(r.Template).Operations() {
			got := []string{}
			if op.Security == nil {
				t.Errorf("%s %s has no description of its keys", m, r.Template)
				continue
			}
			for _, requirement := range *op.Security {
				name := ""
				for scheme := range requirement {
					name = scheme
				}
				got = append(got, name)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s: %s", op.OperationID, diff)
			}
			if r.Scope != "" && r.Auth == routes.APIKey && !strings.Contains(op.Description, "`"+r.Scope+"`") {
				t.Errorf("%s does not name the scope %s", op.OperationID, r.Scope)
			}
		}
	}
}

// TestErrorsAreDescribed checks that the described error codes, with their statuses and fields, are those of the
// services.
func TestErrorsAreDescribed(t *testing.T) {
	d := document(t)
	var want, got []string
	internal := map[apierr.Code]bool{apierr.KeyNotFound: true} // only operations under /internal answer it, which are not published
	for _, c := range apierr.Codes() {
		if !internal[c] {
			want = append(want, string(c))
		}
	}
	for _, v := range d.Components.Schemas["ErrorCode"].Value.Enum {
		got = append(got, v.(string))
	}
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("codes (-code +description):\n%s", diff)
	}
	described := map[apierr.Code]bool{}
	for path, item := range d.Paths.Map() {
		for _, op := range item.Operations() {
			for status, response := range op.Responses.Map() {
				for _, c := range codes(response.Value) {
					described[c.code] = true
					if status != "default" && status != statusText(c.code) {
						t.Errorf("%s %s: %s is described as %s, and is %d", op.OperationID, path, c.code, status, c.code.Status())
					}
					if diff := cmp.Diff(append([]string{"error"}, c.code.Context()...), c.fields); diff != "" {
						t.Errorf("%s: fields (-code +description):\n%s", c.code, diff)
					}
				}
			}
		}
	}
	for _, c := range apierr.Codes() {
		if !described[c] && !internal[c] && c != apierr.MethodNotAllowed { // no operation answers it
			t.Errorf("no operation is described to answer %s", c)
		}
	}
}

func statusText(c apierr.Code) string {
	return string([]byte{byte('0' + c.Status()/100), byte('0' + c.Status()/10%10), byte('0' + c.Status()%10)})
}

type describedCode struct {
	code   apierr.Code
	fields []string
}

// codes returns the codes that the errors of a response may have.
func codes(r *openapi3.Response) []describedCode {
	content := r.Content["application/json"]
	if content == nil {
		return nil
	}
	all := openapi3.SchemaRefs{content.Schema}
	all = append(all, content.Schema.Value.AnyOf...)
	var found []describedCode
	for _, s := range all {
		e := s.Value.Properties["error"]
		if e == nil || e.Value.Properties["code"].Ref != "" {
			continue
		}
		for _, v := range e.Value.Properties["code"].Value.Enum {
			found = append(found, describedCode{apierr.Code(v.(string)), s.Value.Required})
		}
	}
	return found
}
