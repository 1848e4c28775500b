package screen

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"testing"
)

func TestWriter(t *testing.T) {
	for _, tt := range []struct{ name, in, want string }{
		{"text", "Grüße, 世界 👋🏽\tok\n", "Grüße, 世界 👋🏽\tok\n"},
		{"escape sequences", "\x1b]0;title\x07\x1b[31m", `\u001b]0;title\u0007\u001b[31m`},
		{"C1", "a\u009b31mb", `a\u009b31mb`},
		{"C1 as one byte", "a\x9b31mb", `a\u009b31mb`},
		{"a line that overwrites another", "true\rfalse", `true\u000dfalse`},
		{"backspace and delete", "a\x08\x7f", `a\u0008\u007f`},
		{"direction", "a\u202eb\u2066c\u200fd", `a\u202eb\u2066c\u200fd`},
		{"JSON", "{\"a\":\"\u009b\u202e\"}\n", `{"a":"\u009b\u202e"}` + "\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, size := range []int{1, 3, len(tt.in)} { // a character may come in several parts
				var got bytes.Buffer
				w := &Writer{terminal: &got}
				for rest := []byte(tt.in); len(rest) > 0; rest = rest[min(size, len(rest)):] {
					part := rest[:min(size, len(rest))]
					if n, err := w.Write(part); n != len(part) || err != nil {
						t.Fatal(n, err)
					}
				}
				if got.String() != tt.want {
					t.Errorf("in parts of %d bytes: %q; want %q", size, got.String(), tt.want)
				}
			}
		})
	}
}

// TestFile checks that a file gets the bytes as they are.
func TestFile(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if w := Of(f); w != io.Writer(f) {
		t.Errorf("a file is written by %T", w)
	}
}
