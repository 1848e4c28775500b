package app_test

import (
	"testing"
)

// TestCredentialNamesItsHeaders uses credentials that are allowed only in some headers.
func TestCredentialNamesItsHeaders(t *testing.T) {
	w := run(t, setup{open: true, manifests: func(w *world) string {
		return endpoint(w, "web", m{"credentials": []string{"cred_main", "cred_bearer", "cred_both"}}) +
			credential("cred_bearer", project, "prod", "value-of-a-bearer", m{"headers": []string{"authorization", "X-Token"}}) +
			credential("cred_both", project, "prod", "value-of-a-query-too", m{"headers": []string{"X-Token"}, "places": []string{"Header", "URL"}})
	}})
	on := []string{"X-Use-Body-Templating", "true", "Content-Type", "text/plain"}
	for _, tt := range []struct {
		name string
		in   call
		want string
	}{
		{"its header", call{target: w.url("/"), headers: []string{"Authorization", "Bearer {{cred_bearer}}"}}, ""},
		{"its other header, in another case", call{target: w.url("/"), headers: []string{"x-token", "{{cred_bearer}}"}}, ""},
		{"both", call{target: w.url("/"), headers: []string{"X-Token", "{{cred_bearer}}", "Authorization", "{{cred_bearer}}"}}, ""},
		{"another header", call{target: w.url("/"), headers: []string{"X-Note", "{{cred_bearer}}"}}, "credential_not_allowed"},
		{"its header and another", call{target: w.url("/"), headers: []string{"Authorization", "{{cred_bearer}}", "X-Note", "{{cred_bearer}}"}}, "credential_not_allowed"},
		{"the URL", call{target: w.url("/{{cred_bearer}}")}, "credential_not_allowed"},
		{"the body", call{method: "POST", target: w.url("/"), body: "{{cred_bearer}}", headers: on}, "credential_not_allowed"},
		{"a place that is named too", call{target: w.url("/{{cred_both}}")}, ""},
		{"one that names none", call{target: w.url("/"), headers: []string{"X-Note", "{{cred_main}}"}}, ""},
	} {
		before := w.dialled()
		got := w.do(tt.in)
		if got.code() != tt.want {
			t.Errorf("%s: %d %s, want %q", tt.name, got.StatusCode, got.body, tt.want)
		}
		if tt.want != "" && w.dialled() != before {
			t.Errorf("%s: something was dialled", tt.name)
		}
	}
}
