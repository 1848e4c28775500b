package app_test

import (
	"strings"
	"testing"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/encoding/unicode/utf32"
)

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
