package auth_test

import (
	"errors"
	"fmt"
	"hash/crc32"
	"math/big"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/lectern-dev/lectern/shared/auth"
)

// writtenDown is a key from the first version of the format. The keys of users must stay valid.
const writtenDown = "rk_0123456789ABCDEFGHIJKLMNOPQRSTUV"

const digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

// withChecksum adds a checksum to a key. It computes it with other code than the package.
func withChecksum(body string) string {
	n := new(big.Int).SetUint64(uint64(crc32.ChecksumIEEE([]byte(body))))
	var out []byte
	for range 6 {
		var digit big.Int
		n.DivMod(n, big.NewInt(62), &digit)
		out = append([]byte{digits[digit.Int64()]}, out...)
	}
	return body + string(out)
}

func TestParseForeignKey(t *testing.T) {
	good := withChecksum(writtenDown)
	flipped := good[:len(good)-1] + string(digits[(strings.IndexByte(digits, good[len(good)-1])+1)%62])
	for _, tt := range []struct {
		name string
		in   string
		want error
	}{
		{"any form", "pk-live.12 34", nil},
		{"one byte", "x", nil},
		{"512 bytes", strings.Repeat("x", 512), nil},
		{"another rk_ form", "rk_live_1234", nil},
		{"a minted key", good, nil},
		{"empty", "", auth.ErrMalformed},
		{"513 bytes", strings.Repeat("x", 513), auth.ErrMalformed},
		{"control character", "a\x00b", auth.ErrMalformed},
		{"tab", "a\tb", auth.ErrMalformed},
		{"not ASCII", "clé", auth.ErrMalformed},
		{"delete", "a\x7f", auth.ErrMalformed},
		{"minted form, wrong checksum", flipped, auth.ErrMalformed},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := auth.ParseForeignKey(tt.in); !errors.Is(err, tt.want) || (err == nil) != (tt.want == nil) {
				t.Fatalf("err = %v, want %v", err, tt.want)
			}
		})
	}
}

func TestMintedKeysParse(t *testing.T) {
	seen := map[string]bool{}
	counts := map[byte]int{}
	const n = 2000
	for range n {
		key, h := auth.Mint()
		text := key.Reveal()
		if seen[text] {
			t.Fatalf("minted twice")
		}
		seen[text] = true
		got, err := auth.ParseKey(text)
		if err != nil || got != h {
			t.Fatalf("a minted key does not parse to its hash: %v", err)
		}
		if text != withChecksum(text[:35]) {
			t.Fatalf("checksum %q is not that of the form", text[35:])
		}
		for i := 3; i < 35; i++ {
			counts[text[i]]++
		}
		if shown := fmt.Sprintf("%v %+v %#v %s %q", key, key, key, key, key); strings.Contains(shown, text[3:]) {
			t.Fatalf("a minted key shows when printed: %s", shown)
		}
	}
	// Each of 62 digits is expected n*32/62 = 1032 times, with a standard deviation of 32. With bytes modulo 62, eight
	// of them would be 20 % more frequent.
	for i := range digits {
		if c := counts[digits[i]]; c < 1032-200 || c > 1032+200 {
			t.Errorf("digit %c occurs %d times in %d", digits[i], c, n*32)
		}
	}
}

// TestChecksumFindsTypingErrors checks that a key with one changed character, or with two swapped ones, is refused by
// its checksum alone.
func TestChecksumFindsTypingErrors(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		body := "rk_" + rapid.StringMatching(`[0-9A-Za-z]{32}`).Draw(t, "random")
		key := withChecksum(body)
		if _, err := auth.ParseKey(key); err != nil {
			t.Fatalf("%q: %v", key, err)
		}
		i := rapid.IntRange(3, len(key)-1).Draw(t, "place")
		c := digits[rapid.IntRange(0, 61).Draw(t, "digit")]
		if c == key[i] {
			return
		}
		wrong := key[:i] + string(c) + key[i+1:]
		if _, err := auth.ParseKey(wrong); !errors.Is(err, auth.ErrMalformed) {
			t.Fatalf("%q passes for %q", wrong, key)
		}
	})
}

func FuzzParseKey(f *testing.F) {
	good := withChecksum(writtenDown)
	for _, text := range []string{
		good, writtenDown + "000000", "", "rk_", "x", "sk_" + good[3:], "RK_" + good[3:], good[:len(good)-1], good + "0", " " + good[1:],
		good[:len(good)-1] + " ", good[:10] + "-" + good[11:], good[:20] + strings.ToLower(good[20:21]) + good[21:],
		"rk_" + strings.Repeat("é", 19), strings.Repeat("\x00", 41), strings.Repeat("r", 1<<20),
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		h, err := auth.ParseKey(text)
		wellFormed := len(text) == 41 && strings.HasPrefix(text, "rk_") && strings.Trim(text[3:], digits) == "" &&
			withChecksum(text[:35]) == text
		if (err == nil) != wellFormed {
			t.Fatalf("ParseKey(%q) = %v, want it accepted: %v", text, err, wellFormed)
		}
		foreign, foreignErr := auth.ParseForeignKey(text)
		if err == nil && (foreignErr != nil || foreign != h) {
			t.Fatalf("a key of our form is another key when it is tried as any: %v", foreignErr)
		}
		if foreignErr == nil && (text == "" || len(text) > 512 || foreign != auth.HashKey(text)) {
			t.Fatalf("ParseForeignKey(%q) accepts it", text)
		}
	})
}

func TestScopes(t *testing.T) {
	for _, tt := range []struct {
		name string
		in   []string
		want auth.Scopes
		text string
		bad  bool
	}{
		{"none", nil, 0, "", false},
		{"one", []string{"entries:read"}, auth.ScopesOf(auth.EntriesRead), "entries:read", false},
		{"a list in one", []string{"proxy:use, entries:read"}, auth.ScopesOf(auth.EntriesRead, auth.ProxyUse), "entries:read proxy:use", false},
		{"twice", []string{"proxy:use", "proxy:use"}, auth.ScopesOf(auth.ProxyUse), "proxy:use", false},
		{"the default", []string{"entries:read embeddables:read experiments:read"}, auth.DefaultScopes, "entries:read embeddables:read experiments:read", false},
		{"unknown", []string{"entries:read", "entries:write"}, 0, "", true},
		{"wrong case", []string{"Entries:Read"}, 0, "", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := auth.ParseScopes(tt.in...)
			if got != tt.want || (err != nil) != tt.bad {
				t.Fatalf("got %q, %v", got, err)
			}
			if err == nil && got.String() != tt.text {
				t.Errorf("prints as %q, want %q", got, tt.text)
			}
		})
	}
	if auth.DefaultScopes.Has(auth.ProxyUse) {
		t.Error("the proxy is among the default scopes")
	}
	if auth.DefaultScopes.Has(0) {
		t.Error("a set has the scope of nothing")
	}
}
