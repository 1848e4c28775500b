package template_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lectern-dev/lectern/proxy/internal/template"
	"github.com/lectern-dev/lectern/proxy/secret"
)

func examine(contentType, name, body string) (template.Survey, error) {
	media, known := template.MediaOf(contentType)
	if !known {
		return template.Survey{}, template.Unfit("unknown")
	}
	return template.Examine([]template.Part{{Media: media, Length: len(body), Name: name}}, []byte(body))
}

func TestPathsOfPlaceholders(t *testing.T) {
	const json, form = "application/json", "application/x-www-form-urlencoded"
	long := strings.Repeat("n", secret.MaxBodyPath)
	for _, tt := range []struct {
		name, contentType, part, body string
		want                          []string
	}{
		{"member", json, "", `{"auth": {"token": "Bearer {{cred_a}}"}, "n": [1, {"x": null}]}`, []string{"/auth/token"}},
		{"items", json, "", `[[], "{{cred_a}}", {"b": ["x", "{{cred_a}}{{cred_a}}"]}]`, []string{"/1", "/2/b/1"}},
		{"escaped names", json, "", `{"a/b~": {"\u0063": "{{cred_a}}"}}`, []string{"/a~1b~0/c"}},
		{"the name of a member", json, "", `{"{{cred_a}}": "x"}`, []string{""}},
		{"the whole text", json, "", `"{{cred_a}}"`, []string{""}},
		{"after a closed object", json, "", `{"a": {"b": {"c": 1}}, "d": "{{cred_a}}"}`, []string{"/d"}},
		{"a name as long as a pointer", json, "", `{"` + long[1:] + `": "{{cred_a}}"}`, []string{"/" + long[1:]}},
		{"a longer name", json, "", `{"` + long + `": "{{cred_a}}"}`, []string{""}},
		{"deep", json, "", strings.Repeat("[", 9000) + `"{{cred_a}}"` + strings.Repeat("]", 9000), []string{""}},
		{"fields", form, "", "a=1&b%5Fc=x{{cred_a}}&d={{cred_a}}&b_c={{cred_a}}", []string{"b_c", "d"}},
		{"the name of a field", form, "", "a{{cred_a}}=1", []string{""}},
		{"a field that some end early", form, "", "a=1;b={{cred_a}}", []string{""}},
		{"a field without a value", form, "", "a&{{cred_a}}", []string{""}},
		{"text", "text/plain", "", "a={{cred_a}}", []string{""}},
		{"XML", "text/xml", "", "<a>{{cred_a}}</a>", []string{""}},
		{"JSON in a part", json, "p", `{"a": "{{cred_a}}"}`, []string{"p"}},
		{"a form in a part", form, "p", "a={{cred_a}}", []string{"p"}},
		{"text in a part", "text/plain", "p", "{{cred_a}}", []string{"p"}},
	} {
		s, err := examine(tt.contentType, tt.part, tt.body)
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		if diff := cmp.Diff(tt.want, s.Paths("cred_a")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
	var many strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&many, "f%d={{cred_a}}&", i)
	}
	s, err := examine(form, "", many.String())
	if n := len(s.Paths("cred_a")); err != nil || n != secret.MaxBodyPaths+1 {
		t.Errorf("%d paths, %v", n, err)
	}
}

func TestBodiesThatAreNotWhatTheySay(t *testing.T) {
	const json, form, xml, html = "application/json", "application/x-www-form-urlencoded", "application/xml", "text/html"
	for _, tt := range []struct{ name, contentType, body string }{
		{"repeated names", json, `{"a": "{{cred_a}}", "a": 1}`},
		{"names that are equal after their escapes", json, `{"a": 1, "\u0061": "{{cred_a}}"}`},
		{"no string", json, `{"a": {{cred_a}}}`},
		{"a comment", json, `{"a": "{{cred_a}}" /* x */}`},
		{"two values", json, `{"a": 1} "{{cred_a}}"`},
		{"a trailing comma", json, `["{{cred_a}}",]`},
		{"no value", json, ` `},
		{"half of a surrogate pair", json, `"\ud83d{{cred_a}}"`},
		{"a lead byte before the value", "text/plain", "\x81{{cred_a}}"},
		{"an encoding after other attributes", xml, `<?xml version='1.0' standalone="no" EnCoDiNg = 'utf-7' ?><a>{{cred_a}}</a>`},
		{"an encoding before a later end", xml, `<?xml version="1.0"?><a encoding="utf-7"/><?x ?>`},
		{"white space before the declaration", "text/plain", "\n <?xml version='1.0' encoding='utf-16'?>{{cred_a}}"},
		{"an encoding in a declaration without an end", xml, `<?xml version="1.0" encoding="utf-16" <a>{{cred_a}}</a>`},
		{"an encoding without quotes", xml, `<?xml encoding=utf-7?>{{cred_a}}`},
		{"a meta element", html, `<p><META content='text/html; charset=utf-7' http-equiv=x>{{cred_a}}`},
		{"a meta element with references", html, `<meta http-equiv=content-type content="text/html; &#99;harset&#61;utf-7">{{cred_a}}`},
		{"a meta element after a quoted end", html, `< meta a=">" charset = "iso-2022-jp">{{cred_a}}`},
		{"a meta element in text", "text/plain", `<meta charset=utf-7>{{cred_a}}`},
		{"a style sheet", "text/css", `@charset "utf-7"; a { content: "{{cred_a}}" }`},
		{"a field for the charset", form, "a={{cred_a}}&_charset_=utf-16"},
		{"a field for the charset, encoded", form, "%5Fcharset%5F=%75tf-7;a={{cred_a}}"},
		{"a charset in a further parameter", `text/plain; x="; charset=utf-7"`, "{{cred_a}}"},
		{"two charsets", "text/plain; charset=utf-8; Charset=utf-8", "{{cred_a}}"},
		{"an extended charset", "text/plain; charset*=us-ascii''utf-8", "{{cred_a}}"},
		{"a charset in pieces", "text/plain; charset*0=utf; charset*1=-8", "{{cred_a}}"},
	} {
		_, err := examine(tt.contentType, "", tt.body)
		if _, unfit := errors.AsType[template.Unfit](err); !unfit {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
	for _, tt := range []struct{ name, contentType, body string }{
		{"JSON", "application/vnd.api+json; charset=UTF-8", ` {"a": "ü", "b": {"a": "{{cred_a}}"}} ` + "\n"},
		{"SOAP", "text/xml; charset=utf-8", `<?xml version="1.0" encoding="UTF-8"?><e encodingStyle="http://schemas.xmlsoap.org/soap/encoding/" encoding="base64">{{cred_a}}</e>`},
		{"a page", html, `<!doctype html><meta charset="utf-8"><p>a charset of {{cred_a}}`},
		{"ISO 8859-1", "text/plain; charset=iso-8859-1", "\xE9{{cred_a}}"},
		{"a form", form, "_charset_=UTF-8&a=1;b={{cred_a}}"},
		{"a style sheet", "text/css", `@charset "utf-8"; a { content: "{{cred_a}}" }`},
	} {
		if _, err := examine(tt.contentType, "", tt.body); err != nil {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}
