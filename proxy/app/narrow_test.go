package app_test

import (
	"testing"
)

// TestCredentialNamesItsPaths uses credentials that are allowed only at some places of a body.
func TestCredentialNamesItsPaths(t *testing.T) {
	w := run(t, setup{open: true, manifests: func(w *world) string {
		return endpoint(w, "web", m{"credentials": []string{"cred_body", "cred_both", "cred_url"}}) +
			credential("cred_body", project, "prod", "value-at-a-path", m{"bodyPaths": []string{"/auth/0/token", "token"}}) +
			credential("cred_both", project, "prod", "value-at-a-path-too", m{"bodyPaths": []string{"token"}, "headers": []string{"Authorization"}}) +
			credential("cred_url", project, "prod", "value-in-a-url-too", m{"bodyPaths": []string{"token"}, "places": []string{"Body", "URL"}})
	}})
	const json, form, refused = "application/json", "application/x-www-form-urlencoded", "credential_not_allowed"
	part := func(disposition, header string) string {
		return "--b\r\nContent-Disposition: form-data; " + disposition + "\r\n" + header + "\r\n{{cred_body}}\r\n--b--\r\n"
	}
	for _, tt := range []struct{ name, contentType, body, want string }{
		{"its pointer", json, `{"auth": [{"token": "a {{cred_body}}"}]}`, ""},
		{"another pointer", json, `{"auth": [{"token": ""}, {"token": "{{cred_body}}"}]}`, refused},
		{"its pointer and another", json, `{"auth": [{"token": "{{cred_body}}"}], "note": "{{cred_body}}"}`, refused},
		{"a name in JSON", json, `{"token": "{{cred_body}}"}`, refused},
		{"the name of a member", json, `{"auth": [{"{{cred_body}}": ""}]}`, refused},
		{"its field", form, "a=b&token={{cred_body}}", ""},
		{"another field", form, "note={{cred_body}}", refused},
		{"a field that some end early", form, "token=;note={{cred_body}}", refused},
		{"its part", "multipart/form-data; boundary=b", part(`name="token"`, ""), ""},
		{"its part, of a file", "multipart/form-data; boundary=b", part(`name="token"; filename="a.txt"`, "Content-Type: text/plain\r\n"), ""},
		{"another part", "multipart/form-data; boundary=b", part(`name="note"`, ""), refused},
		{"a part of two names", "multipart/form-data; boundary=b", part(`name="token"; name="note"`, ""), refused},
		{"a part of an extended name", "multipart/form-data; boundary=b", part(`name="token"; name*=utf-8''note`, ""), refused},
		{"a part of two dispositions", "multipart/form-data; boundary=b", part(`name="token"`, "Content-Disposition: form-data; name=\"note\"\r\n"), refused},
		{"text", "text/plain", "token={{cred_body}}", refused},
		{"XML", "application/xml", "<token>{{cred_body}}</token>", refused},
	} {
		before := w.dialled()
		got := w.do(call{method: "POST", target: w.url("/"), body: tt.body, headers: []string{"X-Use-Body-Templating", "true", "Content-Type", tt.contentType}})
		if got.code() != tt.want || tt.want != "" && w.dialled() != before {
			t.Errorf("%s: %d %s, want %q", tt.name, got.StatusCode, got.body, tt.want)
		}
	}
	for _, tt := range []struct {
		name string
		in   call
		want string
	}{
		{"a header, without places", call{target: w.url("/"), headers: []string{"Authorization", "{{cred_body}}"}}, refused},
		{"the URL, without places", call{target: w.url("/{{cred_body}}")}, refused},
		{"a header that is named too", call{target: w.url("/"), headers: []string{"Authorization", "{{cred_both}}"}}, ""},
		{"the URL, beside both", call{target: w.url("/{{cred_both}}")}, refused},
		{"the URL, which is a place", call{target: w.url("/{{cred_url}}")}, ""},
	} {
		if got := w.do(tt.in); got.code() != tt.want {
			t.Errorf("%s: %d %s, want %q", tt.name, got.StatusCode, got.body, tt.want)
		}
	}
}

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
