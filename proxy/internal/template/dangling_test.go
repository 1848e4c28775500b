package template

import "testing"

func TestDangling(t *testing.T) {
	for text, want := range map[string]string{
		`a=%{{cred_a}}`: `%`, `a=%2{{ cred_a }}`: `%2`, `a=%25{{cred_a}}`: ``, `a=%252{{cred_a}}`: ``, `100 % {{cred_a}}`: ``,
		`"\{{cred_a}}"`: `\`, `"\\{{cred_a}}"`: ``, `"\\\{{cred_a}}"`: `\`, `"\u006{{cred_a}}"`: `\u006`, `"\u{{cred_a}}"`: `\u`,
		`"\u0061{{cred_a}}"`: ``, `"\\u006{{cred_a}}"`: ``, `"\x6{{cred_a}}"`: `\x6`, `menu{{cred_a}}`: ``, `box{{cred_a}}`: ``,
		`&#{{cred_a}}`: `&#`, `&#6{{cred_a}}`: `&#6`, `&#X6{{cred_a}}`: `&#X6`, `&#65;{{cred_a}}`: ``, `a&{{cred_a}}`: ``,
		`{{cred_a}}`: ``, `{{cred_a}}%2{{cred_b}}`: `%2`, `no placeholder %2`: ``, `%2{{ other }}`: ``, `{{cred_a}}{{cred_b}}`: ``,
	} {
		if got := Dangling([]byte(text)); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}
