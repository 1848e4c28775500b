package wire

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// checkText checks that encoding/json decodes the text that AppendText wrote.
func checkText(t interface {
	Helper()
	Fatalf(string, ...any)
}, s string) {
	t.Helper()
	out := AppendText([]byte("x"), []byte(s))
	if out[0] != 'x' {
		t.Fatalf("AppendText overwrote the text before: %q", out)
	}
	var back string
	if err := json.Unmarshal(out[1:], &back); err != nil || back != s {
		t.Fatalf("AppendText(%q) = %s, read back as %q, %v", s, out[1:], back, err)
	}
}

func TestAppendText(t *testing.T) {
	for c := range rune(0x300) {
		for pad := range 9 {
			checkText(t, strings.Repeat("a", pad)+string(c)+strings.Repeat("b", 8-pad))
		}
	}
	checkText(t, `{"a":"\u0000 \ud800","b":[1,2.50,"é\n"]}`)
	if got := string(AppendNullableText(nil, nil)); got != "null" {
		t.Errorf("nil: %s", got)
	}
	if got := string(AppendNullableText(nil, []byte{})); got != `""` {
		t.Errorf("empty: %s", got)
	}
}

func TestAppendTextProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { checkText(t, rapid.String().Draw(t, "s")) })
}

func FuzzAppendText(f *testing.F) {
	for _, s := range []string{"", `"`, `\`, "\x00\x1f ", "ééé\"ééééé\\", strings.Repeat("x", 100) + "\n", "\u2028\U0001F600"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if utf8.ValidString(s) {
			checkText(t, s)
		}
	})
}
