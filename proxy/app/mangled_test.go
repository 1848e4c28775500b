package app_test

import (
	"net/http"
	"testing"
)

// TestMangledValues checks that the proxy refuses requests that would change a value. An incomplete escape before the
// value would absorb its first characters. A character set that does not extend ASCII would encode it differently. The
// proxy could not find such a value in the answer.
func TestMangledValues(t *testing.T) {
	w := run(t, setup{open: true})
	templated := func(contentType, body string) call {
		return call{method: "POST", target: w.url("/"), body: body, headers: []string{"Content-Type", contentType, "X-Use-Body-Templating", "true"}}
	}
	header := func(value string) call { return call{target: w.url("/"), headers: []string{"X-Token", value}} }
	for name, tt := range map[string]struct {
		call
		status int
	}{
		"query":          {call{target: w.url("/?a=%2{{ cred_main }}")}, http.StatusBadRequest},
		"query, whole":   {call{target: w.url("/?a=%25{{ cred_main }}")}, http.StatusOK},
		"path":           {call{target: w.url("/%2{{ cred_main }}")}, http.StatusBadRequest},
		"form":           {templated("application/x-www-form-urlencoded", "a=%{{cred_main}}"), http.StatusBadRequest},
		"JSON":           {templated("application/json", `{"a":"\{{cred_main}}"}`), http.StatusBadRequest},
		"JSON, whole":    {templated("application/json", `{"a":"\\{{cred_main}}"}`), http.StatusOK},
		"JSON, \\u":      {templated("application/json", `{"a":"\u006{{cred_main}}"}`), http.StatusBadRequest},
		"XML":            {templated("application/xml", `<a>&#x6{{cred_main}}</a>`), http.StatusBadRequest},
		"header":         {header(`a%2{{cred_main}}`), http.StatusBadRequest},
		"header, whole":  {header(`a%20{{cred_main}}`), http.StatusOK},
		"EBCDIC":         {templated("text/plain; charset=ibm037", "{{cred_main}}"), http.StatusUnsupportedMediaType},
		"EBCDIC, hidden": {templated("text/plain; charset=ibm037; x", "{{cred_main}}"), http.StatusUnsupportedMediaType},
		"UTF-16":         {templated("application/xml; charset=UTF-16LE", "{{cred_main}}"), http.StatusUnsupportedMediaType},
		"UTF-8":          {templated("text/plain; charset=UTF-8", "{{cred_main}}"), http.StatusOK},
		"no placeholder": {templated("application/json", `{"a":"\\u00"}`), http.StatusOK},
	} {
		before := w.dialled()
		got := w.do(tt.call)
		if got.StatusCode != tt.status || tt.status != http.StatusOK && w.dialled() != before {
			t.Errorf("%s: %d %s, want %d", name, got.StatusCode, got.body, tt.status)
		}
	}
}

// TestHeadersSpeltWithUnderscores sends header names with "_". A target may treat them like those with "-".
func TestHeadersSpeltWithUnderscores(t *testing.T) {
	w := run(t, setup{open: true})
	got := w.do(call{target: w.url("/"), headers: []string{
		"Authorization", "{{cred_main}}", "If_Range", `"tag"`, "Accept_Encoding", "br", "Content_Length", "0", "Content_Type", "text/x",
		"Connection", "X-Keep", "X_Keep", "1", "X_Other", "kept",
	}}).seen(t)
	for _, name := range []string{"If_Range", "Accept_Encoding", "Content_Length", "Content_Type", "X_Keep"} {
		if got.Header[http.CanonicalHeaderKey(name)] != nil {
			t.Errorf("the target sees %s: %v", name, got.Header)
		}
	}
	if got.Header.Get("X_Other") != "kept" {
		t.Errorf("the target sees %v", got.Header)
	}
}
