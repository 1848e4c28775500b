package app_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"unicode/utf16"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/encoding/unicode/utf32"
)

// loads decodes JSON as Python's json.loads does, and so request.get_json() of Flask: the first bytes tell the encoding.
func loads(body []byte, to any) error {
	from := encoding.Nop
	is := func(i int) bool { return i < len(body) && body[i] != 0 }
	switch {
	case bytes.HasPrefix(body, []byte("\xFE\xFF")), bytes.HasPrefix(body, []byte("\xFF\xFE")):
		from = unicode.UTF16(unicode.BigEndian, unicode.UseBOM)
	case len(body) >= 4 && !is(0) && is(1):
		from = unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM)
	case len(body) >= 4 && !is(0):
		from = utf32.UTF32(utf32.BigEndian, utf32.IgnoreBOM)
	case len(body) >= 4 && !is(1) && (is(2) || is(3)):
		from = unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM)
	case len(body) >= 4 && !is(1):
		from = utf32.UTF32(utf32.LittleEndian, utf32.IgnoreBOM)
	}
	text, err := from.NewDecoder().Bytes(body)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, to)
}

// TestStoredInOtherCharacters sends JSON in UTF-16 around a placeholder in ASCII to a target that stores and returns what
// it reads.
func TestStoredInOtherCharacters(t *testing.T) {
	var stored atomic.Pointer[string]
	w := run(t, setup{open: true, handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			var in struct{ Note string }
			body, _ := io.ReadAll(r.Body)
			if err := loads(body, &in); err != nil {
				http.Error(w, err.Error(), http.StatusBadRequest)
				return
			}
			stored.Store(&in.Note)
			return
		}
		if note := stored.Load(); note != nil {
			_ = json.NewEncoder(w).Encode(map[string]string{"note": *note})
		}
	})})
	wide := func(text string) string {
		b, err := unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM).NewEncoder().String(text)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	for _, mark := range []string{"", "\xFE\xFF"} {
		before := w.dialled()
		got := w.do(call{
			method: "POST", target: w.url("/notes"), body: mark + wide(`{"note":"`) + "{{ cred_main }}" + wide(`"}`),
			headers: []string{"Content-Type", "application/json", "X-Use-Body-Templating", "true"},
		})
		if got.StatusCode != 415 || got.code() != "unsupported_media_type" || w.dialled() != before {
			t.Errorf("%d %s", got.StatusCode, got.body)
		}
	}
	var out struct{ Note string }
	_ = json.Unmarshal([]byte(w.do(call{target: w.url("/notes")}).body), &out)
	var read strings.Builder
	for _, c := range utf16.Encode([]rune(out.Note)) {
		read.WriteString(string([]byte{byte(c >> 8), byte(c)}))
	}
	if strings.Contains(read.String(), canary[:8]) {
		t.Errorf("the target returns %q, which is %q", out.Note, read.String())
	}
}

// TestBodiesInOtherEncodings sends each type of body in encodings in which a target would read other characters.
func TestBodiesInOtherEncodings(t *testing.T) {
	w := run(t, setup{open: true})
	by := func(e encoding.Encoding) func(before, after string) (string, string) {
		return func(before, after string) (string, string) {
			one, err := e.NewEncoder().String(before)
			if err != nil {
				t.Fatal(err)
			}
			two, err := e.NewEncoder().String(after)
			if err != nil {
				t.Fatal(err)
			}
			return one, two
		}
	}
	around := func(begin, shift, back string) func(before, after string) (string, string) {
		return func(before, after string) (string, string) { return begin + before + shift, back + after }
	}
	encodings := map[string]func(before, after string) (string, string){
		"utf-16le":                 by(unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM)),
		"utf-16be":                 by(unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM)),
		"utf-16le with its mark":   by(unicode.UTF16(unicode.LittleEndian, unicode.UseBOM)),
		"utf-16be with its mark":   by(unicode.UTF16(unicode.BigEndian, unicode.UseBOM)),
		"utf-32le":                 by(utf32.UTF32(utf32.LittleEndian, utf32.IgnoreBOM)),
		"utf-32be":                 by(utf32.UTF32(utf32.BigEndian, utf32.IgnoreBOM)),
		"ibm037":                   by(charmap.CodePage037),
		"utf-7":                    around("+/v8-", "+", "-"),
		"iso-2022-jp":              around("", "\x1b$B", "\x1b(B"),
		"utf-8 with its mark":      around("\xEF\xBB\xBF", "", ""),
		"a lead byte of Shift_JIS": around("", "\x81", ""),
	}
	for _, kind := range []struct{ name, contentType, before, after string }{
		{"JSON", "application/json", `{"v":"`, `"}`},
		{"XML", "application/xml", `<?xml version="1.0" encoding="NAME"?><v>`, `</v>`},
		{"HTML", "text/html", `<meta charset="NAME"><p>`, `</p>`},
		{"text", "text/plain", "v: ", "."},
		{"form", "application/x-www-form-urlencoded", "_charset_=NAME&v=", ""},
		{"part", "multipart/form-data; boundary=bound", "v: ", "."},
	} {
		for name, encode := range encodings {
			before, after := encode(strings.ReplaceAll(kind.before, "NAME", name), kind.after)
			body := before + "{{ cred_main }}" + after
			if kind.name == "part" {
				body, _ = form([3]string{`name="v"`, "", body})
			}
			dialled := w.dialled()
			got := w.do(call{method: "POST", target: w.url("/"), body: body, headers: []string{"Content-Type", kind.contentType, "X-Use-Body-Templating", "true"}})
			if got.StatusCode != 415 || got.code() != "unsupported_media_type" || w.dialled() != dialled {
				t.Errorf("%s in %s: %d %s", kind.name, name, got.StatusCode, got.body)
			}
		}
	}
	for _, body := range []string{"--bound\r\nContent-Disposition: form-data; name=\"_charset_\"\r\n\r\nutf-16\r\n", ""} {
		part, contentType := form([3]string{`name="v"`, "", "{{ cred_main }}"})
		got := w.do(call{method: "POST", target: w.url("/"), body: body + part, headers: []string{"Content-Type", contentType, "X-Use-Body-Templating", "true"}})
		if refused := got.StatusCode == 415; refused != (body != "") {
			t.Errorf("%q before a part: %d %s", body, got.StatusCode, got.body)
		}
	}
}
