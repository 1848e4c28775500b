package template_test

import (
	"bytes"
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/text/transform"
	"pgregory.net/rapid"

	"github.com/lectern-dev/lectern/proxy/internal/template"
	"github.com/lectern-dev/lectern/shared/wire"
)

// grammar is copied from the contract.
var grammar = regexp.MustCompile(`\{\{ {0,16}(cred_[A-Za-z0-9_-]{1,64}) {0,16}\}\}`)

var values = map[string][]byte{
	"cred_a":                          []byte("plain-value"),
	"cred_b":                          []byte("q\"b\\s\n\t\x01 é&=+%/~*"),
	"cred_nest":                       []byte("{{ cred_a }}"),
	"cred_a_":                         []byte("not the value of cred_a"),
	"cred_" + strings.Repeat("x", 64): []byte("long id"),
	"cred_empty":                      nil,
	"cred_0-_Z":                       []byte("}}{{"),
	"cred_cred_a":                     []byte("doubly named"),
}

// model replaces the placeholders in the whole body at once, with the grammar.
func model(syntax template.Syntax, body []byte) []byte {
	return grammar.ReplaceAllFunc(body, func(placeholder []byte) []byte {
		v := values[string(grammar.FindSubmatch(placeholder)[1])]
		switch syntax {
		case template.Form:
			return template.AppendForm(nil, v)
		case template.JSON:
			return wire.AppendTextPart(nil, v)
		}
		return v
	})
}

// drive feeds body to a transformer. next chooses the size of each input piece and of each output buffer.
func drive(t transform.Transformer, body []byte, next func(most int) int) ([]byte, error) {
	var out []byte
	held, fed := 0, 0
	for {
		dst := make([]byte, next(40))
		nDst, nSrc, err := t.Transform(dst, body[held:fed], fed == len(body))
		out = append(out, dst[:nDst]...)
		held += nSrc
		switch {
		case errors.Is(err, transform.ErrShortDst):
		case errors.Is(err, transform.ErrShortSrc) && fed == len(body):
			return nil, errors.New("asks for more at the end")
		case err == nil && held < fed:
			return nil, errors.New("no error, and input is left")
		case err == nil && fed == len(body):
			return out, nil
		case err == nil || errors.Is(err, transform.ErrShortSrc):
			fed = min(len(body), fed+next(30))
		default:
			return nil, err
		}
	}
}

var bodyPiece = rapid.OneOf(
	rapid.SampledFrom([]string{"{", "{{", "}}", "}", " ", "\"", "\\", "cred_", "cred_a", "{{cred_a}}", "{{ cred_b }}", "{{ cred_nest }}",
		"{{ cred_" + strings.Repeat("x", 64) + " }}", "{{cred_" + strings.Repeat("x", 65) + "}}",
		"{{" + strings.Repeat(" ", 16) + "cred_a" + strings.Repeat(" ", 16) + "}}", "{{" + strings.Repeat(" ", 17) + "cred_a}}",
		"{{cred_}}", "{{ cred_a_ }}", "{{{cred_a}}}", "{{ cred_0-_Z }}", "{{cred_cred_a}}", "{{cred_empty}}", "{{name}}", "{{\tcred_a}}"}),
	rapid.StringN(0, 12, -1),
)

func TestBodyEqualsModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var parts []template.Part
		var body, want []byte
		var ids []string
		for range rapid.IntRange(1, 4).Draw(t, "parts") {
			syntax := rapid.SampledFrom([]template.Syntax{template.Text, template.XML, template.JSON, template.Form, template.Verbatim}).Draw(t, "syntax")
			text := []byte(strings.Join(rapid.SliceOfN(bodyPiece, 0, 30).Draw(t, "pieces"), ""))
			parts = append(parts, template.Part{Media: template.Media{Syntax: syntax}, Length: len(text)})
			body = append(body, text...)
			if syntax == template.Verbatim {
				want = append(want, text...)
				continue
			}
			for _, m := range grammar.FindAllSubmatch(text, -1) {
				id := string(m[1])
				if _, ok := values[id]; !ok {
					t.Skip("another id")
				}
				if !slices.Contains(ids, id) {
					ids = append(ids, id)
				}
			}
			want = append(want, model(syntax, text)...)
		}
		b := template.NewBody(parts, values)
		got, err := drive(b, body, func(most int) int { return rapid.IntRange(1, most).Draw(t, "n") })
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Fatalf("body %q:\n got %q\nwant %q", body, got, want)
		}
		s, err := template.Examine(parts, body)
		if err != nil {
			return // the random text is not what it says
		}
		if size := s.Size(b); size != int64(len(want)) {
			t.Fatalf("body %q: Size %d, want %d", body, size, len(want))
		}
		if diff := cmp.Diff(ids, s.IDs); diff != "" {
			t.Fatalf("IDs (-want +got):\n%s", diff)
		}
	})
}

func TestReplaceEqualsGrammar(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(bodyPiece, 0, 20).Draw(t, "pieces"), "")
		want := grammar.ReplaceAllString(text, "<$1>")
		got := template.Replace(text, func(dst []byte, id string) []byte { return append(append(append(dst, '<'), id...), '>') })
		if got != want {
			t.Fatalf("Replace(%q) = %q, want %q", text, got, want)
		}
		var ids []string
		template.Each(text, func(id string) { ids = append(ids, id) })
		if n := len(grammar.FindAllString(text, -1)); n != len(ids) {
			t.Fatalf("Each(%q) found %v, want %d", text, ids, n)
		}
	})
}

func FuzzBody(f *testing.F) {
	for _, seed := range []string{`{"a":"{{ cred_b }}","b":{{cred_a}}}`, "{{{{cred_a}}", "\"\\\"{{ cred_a }}", "{{ cred_nest }}", "{{" + strings.Repeat(" ", 20) + "cred_a}}", "{{cred_a"} {
		for syntax := range uint8(template.Verbatim) {
			f.Add(seed, syntax, uint8(3), uint8(5))
		}
	}
	f.Fuzz(func(t *testing.T, text string, syntax, in, out uint8) {
		body, s := []byte(text), template.Syntax(syntax%uint8(template.Verbatim))
		for _, m := range grammar.FindAllSubmatch(body, -1) {
			if _, ok := values[string(m[1])]; !ok {
				return
			}
		}
		turn := false
		got, err := drive(template.NewBody([]template.Part{{Media: template.Media{Syntax: s}, Length: len(body)}}, values), body, func(most int) int {
			turn = !turn
			if turn {
				return 1 + int(out)%most
			}
			return 1 + int(in)%most
		})
		if err != nil {
			t.Fatal(err)
		}
		if want := model(s, body); !bytes.Equal(got, want) {
			t.Fatalf("%q: got %q, want %q", body, got, want)
		}
	})
}

func BenchmarkBody(b *testing.B) {
	record := []byte(`{"id":"en_0001","name":"a name of some length","values":[1,2,3],"token":"{{ cred_a }}","text":"lorem ipsum dolor sit amet, consectetur"},`)
	body := bytes.Repeat(record, 8<<20/len(record))
	for _, syntax := range []struct {
		name string
		s    template.Syntax
	}{{"text", template.Text}, {"json", template.JSON}} {
		b.Run(syntax.name, func(b *testing.B) {
			dst := make([]byte, 32<<10)
			t := template.NewBody([]template.Part{{Media: template.Media{Syntax: syntax.s}, Length: len(body)}}, values)
			b.SetBytes(int64(len(body)))
			for b.Loop() {
				t.Reset()
				for rest := body; len(rest) > 0; {
					_, n, err := t.Transform(dst, rest[:min(len(rest), 32<<10)], len(rest) <= 32<<10)
					if err != nil && !errors.Is(err, transform.ErrShortDst) && !errors.Is(err, transform.ErrShortSrc) {
						b.Fatal(err)
					}
					rest = rest[n:]
				}
			}
		})
	}
}
