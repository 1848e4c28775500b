package app_test

import (
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// form is a multipart/form-data body.
func form(parts ...[3]string) (body, contentType string) { // disposition, further header lines, content
	var b strings.Builder
	for _, p := range parts {
		fmt.Fprintf(&b, "--bound\r\nContent-Disposition: form-data; %s\r\n%s\r\n%s\r\n", p[0], p[1], p[2])
	}
	return b.String() + "--bound--\r\n", "multipart/form-data; boundary=bound"
}

// TestMultipart puts values into the parts of text. The other parts pass byte for byte.
func TestMultipart(t *testing.T) {
	var s seen
	w := run(t, setup{open: true, handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		s = seen{Body: string(b), Header: r.Header, Length: r.ContentLength}
	})})
	binary := "\x00\xff{{ cred_main }}\r\n--boun\r\n\n"
	body, contentType := form(
		[3]string{`name="a"`, "", "1 {{ cred_other }} {{cred_main}}"},
		[3]string{`name="b"; filename="b.json"`, "Content-Type: application/json\r\n", `{"k":"{{ cred_other }}"}`},
		[3]string{`name="c"; filename="ä {{ cred_main }}.bin"`, "Content-Type: application/octet-stream\r\n", binary},
		[3]string{`name="d"`, "Content-Type: text/plain\r\nContent-Transfer-Encoding: quoted-printable\r\n", "{{ cred_main }}=3D"},
		[3]string{`name="e"`, "X-Custom: kept\r\nContent-Type: application/x-www-form-urlencoded\r\n", "k={{ cred_other }}"},
		[3]string{`name="f"`, "Content-Type: multipart/mixed; boundary=x\r\n", "--x\r\n\r\n{{ cred_main }}\r\n--x--"},
		[3]string{`name="g"`, "", ""},
		[3]string{`name="h"`, "Content-Type: text/plain\r\nContent-Type: text/plain; charset=utf-16\r\n", "{{ cred_main }}"},
		[3]string{`name="i"`, "Content-Encoding: identity\r\n", "{{ cred_main }}"},
		[3]string{`name="j"`, "Content-Type: text/plain; charset*=utf-8''utf-8\r\n", "{{ cred_main }}"},
	)
	c := call{method: "POST", target: w.url("/"), body: "preamble\r\n" + body + "epilogue", headers: []string{"Content-Type", contentType, "X-Use-Body-Templating", "true"}}
	w.do(c)
	media, parameters, err := mime.ParseMediaType(s.Header.Get("Content-Type"))
	if err != nil || media != "multipart/form-data" || s.Length != int64(len(s.Body)) {
		t.Fatalf("%v, %d bytes announced, %d sent", s.Header, s.Length, len(s.Body))
	}
	if parameters["boundary"] == "bound" {
		t.Error("the caller chose the boundary")
	}
	type part struct {
		Header  textproto.MIMEHeader
		Content string
	}
	var got []part
	for r := multipart.NewReader(strings.NewReader(s.Body), parameters["boundary"]); ; {
		p, err := r.NextRawPart()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(p)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, part{p.Header, string(content)})
	}
	header := func(lines ...string) textproto.MIMEHeader {
		h := textproto.MIMEHeader{}
		for i := 0; i < len(lines); i += 2 {
			h.Set(lines[i], lines[i+1])
		}
		return h
	}
	want := []part{
		{header("Content-Disposition", `form-data; name="a"`), "1 " + other + " " + canary},
		{header("Content-Disposition", `form-data; name="b"; filename="b.json"`, "Content-Type", "application/json"), `{"k":"` + other + `"}`},
		{header("Content-Disposition", `form-data; name="c"; filename="ä {{ cred_main }}.bin"`, "Content-Type", "application/octet-stream"), binary},
		{header("Content-Disposition", `form-data; name="d"`, "Content-Type", "text/plain", "Content-Transfer-Encoding", "quoted-printable"), "{{ cred_main }}=3D"},
		{header("Content-Disposition", `form-data; name="e"`, "Content-Type", "application/x-www-form-urlencoded", "X-Custom", "kept"), "k=second%2Fsecret%2Bwith%3Dodd%26chars%3F"},
		{header("Content-Disposition", `form-data; name="f"`, "Content-Type", "multipart/mixed; boundary=x"), "--x\r\n\r\n{{ cred_main }}\r\n--x--"},
		{header("Content-Disposition", `form-data; name="g"`), ""},
		{textproto.MIMEHeader{"Content-Disposition": {`form-data; name="h"`}, "Content-Type": {"text/plain", "text/plain; charset=utf-16"}}, "{{ cred_main }}"},
		{header("Content-Disposition", `form-data; name="i"`, "Content-Encoding", "identity"), "{{ cred_main }}"},
		{header("Content-Disposition", `form-data; name="j"`, "Content-Type", "text/plain; charset*=utf-8''utf-8"), "{{ cred_main }}"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	// Without the header, the body passes as it is.
	c.headers = c.headers[:2]
	if w.do(c); s.Body != c.body || s.Header.Get("Content-Type") != contentType {
		t.Errorf("the target saw %q as %v", s.Body, s.Header)
	}
}

func TestMultipartRefusals(t *testing.T) {
	w := run(t, setup{open: true, environ: map[string]string{"MAX_TEMPLATED_BODY": "1000"}})
	whole, contentType := form([3]string{`name="a"`, "", "{{ cred_main }}"})
	unknown, _ := form([3]string{`name="a"`, "", "{{ cred_nobody }}"})
	escape, _ := form([3]string{`name="a"`, "", "%2{{ cred_main }}"})
	long, _ := form([3]string{`name="a"`, "", strings.Repeat("{{ cred_main }}", 40)})
	near, _ := form([3]string{`name="a"`, "", "{{ cred_main }}" + strings.Repeat("x", 850)})
	many, _ := form([3]string{`name="a"`, "Content-Type: application/octet-stream\r\n", strings.Repeat("x", 1000)})
	for _, tt := range []struct {
		name, body, contentType string
		status                  int
		code                    string
	}{
		{"whole", whole, contentType, 200, ""},
		{"near the limit, with a short boundary", near, contentType, 200, ""},
		{"unknown", unknown, contentType, 404, "credential_not_allowed"},
		{"after the beginning of an escape", escape, contentType, 400, "invalid_parameter"},
		{"too long with values", long, contentType, 413, "payload_too_large"},
		{"too long", many, contentType, 413, "payload_too_large"},
		{"no end", strings.TrimSuffix(whole, "--\r\n"), contentType, 400, "invalid_body"},
		{"cut off in a part", whole[:len(whole)-14], contentType, 400, "invalid_body"},
		{"another boundary", whole, "multipart/form-data; boundary=other", 400, "invalid_body"},
		{"no boundary", whole, "multipart/form-data", 415, "unsupported_media_type"},
		{"another multipart", whole, "multipart/mixed; boundary=bound", 415, "unsupported_media_type"},
	} {
		got := w.do(call{method: "POST", target: w.url("/"), body: tt.body, headers: []string{"Content-Type", tt.contentType, "X-Use-Body-Templating", "true"}})
		if got.StatusCode != tt.status || got.code() != tt.code {
			t.Errorf("%s: %d %s", tt.name, got.StatusCode, got.body)
		}
	}
}
