package scrub_test

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/url"
	"strings"
	"testing"

	"golang.org/x/text/transform"
	"pgregory.net/rapid"

	"github.com/lectern-dev/lectern/proxy/internal/scrub"
	"github.com/lectern-dev/lectern/proxy/internal/stream"
	"github.com/lectern-dev/lectern/proxy/secret"
)

// canaries are secrets of many kinds. None contains another.
var canaries = []string{
	"sk_live_51Hx0Qw9aBcDeFgH", "p%25ercent%%41%", `qu"ote\back/slash` + "\t", "sp ace + plus&=?", "ünïcödé-€-𝄞-key",
	"\xff\xfe\x00\x01binary\x80\x81\x82", "aaaaaaaa", "abababababab", "12345678",
	"-----BEGIN KEY-----\nMIIEpAIBAAKCAQEA\n-----END KEY-----\n", "++++////++++////",
}

func TestFindsInsideBase64(t *testing.T) {
	for _, canary := range canaries {
		m := scrub.NewMatcher([]byte(canary))
		for shift := range 6 {
			for tail := range 3 {
				plain := []byte(strings.Repeat("u", shift) + canary + strings.Repeat("z", tail))
				for name, encoding := range map[string]*base64.Encoding{
					"standard": base64.StdEncoding, "url": base64.URLEncoding, "raw": base64.RawStdEncoding, "raw url": base64.RawURLEncoding,
				} {
					text := encoding.EncodeToString(plain)
					for how, form := range map[string]string{
						"as it is": text, "percent-encoded": url.QueryEscape(text), "slashes escaped": strings.ReplaceAll(text, "/", `\/`),
						"folded": fold(text, 7, "\r\n"), "folded in JSON": fold(text, 7, `\n`),
						"folded with indented lines": fold(text, 7, "\n  "), "indented in JSON": fold(text, 7, `\r\n\t `),
					} {
						got, found := m.String(form)
						if !found {
							t.Errorf("%q after %d bytes, %s, %s: not found in %q", canary, shift, name, how, form)
							continue
						}
						// The rest contains at most bits that the secret shares with the bytes next to it.
						left := strings.NewReplacer("\r\n", "", "\n  ", "", `\r\n\t `, "", `\n`, "", `\/`, "/", "%3D", "=").Replace(got)
						if n := len(left) - len("[redacted]"); n > shift*4/3+tail*4/3+8 {
							t.Errorf("%q after %d bytes, %s, %s: %q is left", canary, shift, name, how, got)
						}
					}
				}
			}
		}
	}
}

// fold breaks text into lines of n characters.
func fold(text string, n int, end string) string {
	var b strings.Builder
	for len(text) > n {
		b.WriteString(text[:n] + end)
		text = text[n:]
	}
	return b.String() + text
}

// TestFindsBase64EncodedOnceMore finds Basic credentials that a target has encoded.
func TestFindsBase64EncodedOnceMore(t *testing.T) {
	for _, canary := range canaries {
		m := scrub.NewMatcher([]byte(canary))
		for _, user := range []string{"", "u", "us", "use"} {
			for name, once := range map[string]*base64.Encoding{"standard": base64.StdEncoding, "url": base64.RawURLEncoding} {
				basic := once.EncodeToString([]byte(user + ":" + canary))
				for how, form := range map[string]string{
					"base64": base64.StdEncoding.EncodeToString([]byte("Basic " + basic)), "base64 of the value alone": base64.URLEncoding.EncodeToString([]byte(basic)),
					"hexadecimal": hex.EncodeToString([]byte(basic)), "base64 of percent-encoding": base64.StdEncoding.EncodeToString([]byte(url.QueryEscape(user + ":" + canary))),
					"folded": fold(base64.StdEncoding.EncodeToString([]byte("x"+basic)), 20, "\r\n"),
				} {
					if got, found := m.String(form); !found {
						t.Errorf("%q of user %q, %s, %s: not found in %q", canary, user, name, how, got)
					}
				}
			}
		}
	}
}

func TestLeavesOtherTextAlone(t *testing.T) {
	m := scrub.NewMatcher([]byte("sk_live_51Hx0Qw9aBcDeFgH"), []byte(`p%q\r"s/t`))
	for _, text := range []string{
		"", "%", `\`, `\u`, "sk_live_51Hx0Qw9aBcDeFg.", "k_live_51Hx0Qw9aBcDeFgH", "SK_LIVE_51HX0QW9ABCDEFGH",
		base64.StdEncoding.EncodeToString([]byte("sk_live_51Hx0Qw9aBcDeFg")) + "....", "%73%6b_live", `\u0073\u006b`, "100% of it", "sk_live",
	} {
		if got, found := m.String(text); found || got != text {
			t.Errorf("%q became %q", text, got)
		}
	}
	random := make([]byte, 1<<20)
	source := rand.NewChaCha8([32]byte{1})
	_, _ = source.Read(random)
	got, _, err := transform.Bytes(scrub.NewStream(m), random)
	if err != nil || !bytes.Equal(got, random) {
		t.Errorf("random bytes were changed (%v)", err)
	}
}

func TestOverlapsAreOneStretch(t *testing.T) {
	for _, tt := range []struct{ name, in, want string }{
		{"a secret over itself", "xaaaaaaaaaaaay", "x[redacted]y"},
		{"two secrets that share text", "xabcdefgh12345678y", "x[redacted]y"},
		{"one after the other", "xabcdefgh1234abcdefgh1234y", "x[redacted][redacted]y"},
		{"the longer one wins", "xabcdefgh1234z", "x[redacted]z"},
	} {
		m := scrub.NewMatcher([]byte("aaaaaaaa"), []byte("abcdefgh1234"), []byte("gh12345678"), []byte("abcdefgh"))
		if got, _ := m.String(tt.in); got != tt.want {
			t.Errorf("%s: %q became %q, want %q", tt.name, tt.in, got, tt.want)
		}
	}
}

// model searches every position of the whole text for every precomputed form of a secret. It shares no code with the
// search that it is compared to.
func model(texts []string, in string) string {
	covered := make([]bool, len(in)+1)
	begins := make([]bool, len(in)+1)
	end := 0
	for at := range len(in) {
		longest := 0
		for _, text := range texts {
			if strings.HasPrefix(in[at:], text) {
				longest = max(longest, len(text))
			}
		}
		if longest == 0 {
			continue
		}
		if at >= end {
			begins[at] = true
		}
		end = max(end, at+longest)
		for i := at; i < at+longest; i++ {
			covered[i] = true
		}
	}
	var out strings.Builder
	for i := range len(in) {
		if begins[i] {
			out.WriteString("[redacted]")
		}
		if !covered[i] {
			out.WriteByte(in[i])
		}
	}
	return out.String()
}

// spellings returns all forms of a secret of few ASCII letters, except for the case of hex digits.
func spellings(secret string) []string {
	all := []string{""}
	for _, c := range []byte(secret) {
		var longer []string
		for _, prefix := range all {
			for _, s := range []string{string(c), fmt.Sprintf("%%%02x", c), fmt.Sprintf(`\u%04x`, c)} {
				longer = append(longer, prefix+s)
			}
		}
		all = longer
	}
	for shift := range 3 {
		text := base64.RawStdEncoding.EncodeToString([]byte(strings.Repeat("\x00", shift) + secret + "\x00\x00\x00"))
		all = append(all, text[(shift*8+5)/6:(shift+len(secret))*8/6])
	}
	return append(all, hex.EncodeToString([]byte(secret)))
}

func TestStreamEqualsModel(t *testing.T) {
	// Few letters, so that prefixes and overlaps are frequent. All are hex digits too.
	secrets := []string{"abab6261", "b6abab62"}
	var texts []string
	for _, s := range secrets {
		texts = append(texts, spellings(s)...)
	}
	m := scrub.NewMatcher([]byte(secrets[0]), []byte(secrets[1]))
	piece := rapid.OneOf(
		// No incomplete escapes: together with the next piece they could form an escape that the model does not know.
		rapid.SampledFrom([]string{"a", "b", "6", "2", "1", "%61", "%62", "%36", `\u0061`, `\u0062`, "ab", "abab", "6261", "abab626", "b6abab62", "abab6261", "x"}),
		rapid.SampledFrom(texts),
	)
	rapid.Check(t, func(t *rapid.T) {
		in := strings.Join(rapid.SliceOfN(piece, 0, 24).Draw(t, "pieces"), "") + "...." // so that no secret begins at the end
		want := model(texts, in)
		got, err := drive(scrub.NewStream(m), []byte(in), func(most int) int { return rapid.IntRange(1, most).Draw(t, "n") })
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != want {
			t.Fatalf("%q:\n got %q\nwant %q", in, got, want)
		}
		read, err := io.ReadAll(stream.NewReader(&chunks{[]byte(in), rapid.IntRange(1, 9).Draw(t, "chunk")}, scrub.NewStream(m)))
		if err != nil || string(read) != want {
			t.Fatalf("%q: read %q, %v; want %q", in, read, err, want)
		}
	})
}

// TestStreamHoldsNoChunking searches for unusual secrets in random chunks, and compares with a search of the whole
// text.
func TestStreamHoldsNoChunking(t *testing.T) {
	var secrets [][]byte
	var pieces []string
	for _, c := range canaries {
		secrets = append(secrets, []byte(c))
		for _, escape := range escapes {
			form := escape(c)
			pieces = append(pieces, form, form[:len(form)/2], form[len(form)/3:])
		}
		for shift := range 3 {
			pieces = append(pieces, fold(base64.StdEncoding.EncodeToString([]byte(strings.Repeat("x", shift)+c)), 16, "\r\n"))
		}
	}
	m := scrub.NewMatcher(secrets...)
	rapid.Check(t, func(t *rapid.T) {
		in := []byte(strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 0, 10).Draw(t, "pieces"), rapid.SampledFrom([]string{"", " ", "\n"}).Draw(t, "between")))
		want, _, err := transform.Bytes(scrub.NewStream(m), in)
		if err != nil {
			t.Fatal(err)
		}
		got, err := drive(scrub.NewStream(m), in, func(most int) int { return rapid.IntRange(1, most).Draw(t, "n") })
		if err != nil || !bytes.Equal(got, want) {
			t.Fatalf("%q:\n got %q (%v)\nwant %q", in, got, err, want)
		}
		for _, c := range canaries {
			if bytes.Contains(got, []byte(c)) && !strings.Contains(c, "\n") { // a secret of several lines is replaced line by line
				t.Fatalf("%q is left in %q", c, got)
			}
		}
	})
}

// chunks is a reader that returns text in pieces of n bytes.
type chunks struct {
	text []byte
	n    int
}

func (c *chunks) Read(p []byte) (int, error) {
	if len(c.text) == 0 {
		return 0, io.EOF
	}
	n := copy(p, c.text[:min(c.n, len(c.text))])
	c.text = c.text[n:]
	return n, nil
}

// drive feeds text to a transformer. next chooses the size of each input piece and of each output buffer.
func drive(t transform.Transformer, text []byte, next func(most int) int) ([]byte, error) {
	var out []byte
	held, fed := 0, 0
	for {
		dst := make([]byte, next(40))
		nDst, nSrc, err := t.Transform(dst, text[held:fed], fed == len(text))
		out = append(out, dst[:nDst]...)
		held += nSrc
		switch {
		case errors.Is(err, transform.ErrShortDst):
		case errors.Is(err, transform.ErrShortSrc) && fed == len(text):
			return nil, errors.New("asks for more at the end")
		case err == nil && held < fed:
			return nil, errors.New("no error, and input is left")
		case err == nil && fed == len(text):
			return out, nil
		case err == nil || errors.Is(err, transform.ErrShortSrc):
			fed = min(len(text), fed+next(30))
		default:
			return nil, err
		}
	}
}

func FuzzStream(f *testing.F) {
	f.Add("x sk_live_51Hx0Qw9 y", "sk_live_51Hx0Qw9", uint8(3), uint8(4))
	f.Add(`%73k_live`, "sk_live_51Hx0Qw9", uint8(1), uint8(1))
	f.Add("%25%25%25%25%25%25%25%25", "%25%25%25", uint8(1), uint8(9))
	f.Add(`\\\\\\\\\\\\\\\\`, `\\\\\\\\`, uint8(2), uint8(2))
	f.Fuzz(func(t *testing.T, text, value string, in, out uint8) {
		if len(value) < secret.MinSearchable || len(value) > secret.MaxBytes {
			return
		}
		m := scrub.NewMatcher([]byte(value))
		want, _, err := transform.Bytes(scrub.NewStream(m), []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		turn := false
		got, err := drive(scrub.NewStream(m), []byte(text), func(most int) int {
			turn = !turn
			if turn {
				return 1 + int(out)%most
			}
			return 1 + int(in)%most
		})
		if err != nil || !bytes.Equal(got, want) {
			t.Fatalf("%q without %q: got %q (%v), want %q", text, value, got, err, want)
		}
		if bytes.Contains(got, []byte(value)) && !strings.Contains("[redacted]", value) && !strings.Contains(value, "[redacted]") && !touches(value) {
			t.Fatalf("%q is left in %q", value, got)
		}
	})
}

// touches reports whether text next to "[redacted]" may look like the secret.
func touches(secret string) bool {
	return strings.ContainsAny(secret, "[]") || strings.Contains("[redacted]", secret[:1]) || strings.Contains("[redacted]", secret[len(secret)-1:])
}

func BenchmarkStream(b *testing.B) {
	record := []byte(`{"id":"en_0001","name":"a name of some length","values":[1,2,3],"url":"https://example.com/a%20b","text":"lorem \"ipsum\" dolor\n"},`)
	text := bytes.Repeat(record, 8<<20/len(record))
	random := make([]byte, 8<<20)
	_, _ = rand.NewChaCha8([32]byte{}).Read(random)
	folded := []byte(base64.StdEncoding.EncodeToString(random[:6<<20]))
	m := scrub.NewMatcher([]byte("sk_live_51Hx0Qw9aBcDeFgHiJkLmNoP"))
	for _, in := range []struct {
		name string
		b    []byte
	}{{"json", text}, {"random", random}, {"base64", folded}} {
		b.Run(in.name, func(b *testing.B) {
			dst := make([]byte, 32<<10)
			s := scrub.NewStream(m)
			b.SetBytes(int64(len(in.b)))
			for b.Loop() {
				s.Reset()
				for rest := in.b; len(rest) > 0; {
					_, n, err := s.Transform(dst, rest[:min(len(rest), 32<<10)], len(rest) <= 32<<10)
					if err != nil && !errors.Is(err, transform.ErrShortDst) && !errors.Is(err, transform.ErrShortSrc) {
						b.Fatal(err)
					}
					rest = rest[n:]
				}
			}
		})
	}
}
