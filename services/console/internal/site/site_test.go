package site

import (
	"regexp"
	"strings"
	"testing"
	"testing/fstest"
)

// TestImmutableFilesHaveAHash checks that files that browsers cache for a year have a hash of their content in the
// name.
func TestImmutableFilesHaveAHash(t *testing.T) {
	s, err := Load("")
	if err != nil {
		t.Fatal(err)
	}
	hashed := regexp.MustCompile(`-[A-Za-z0-9_-]{8}\.[a-z0-9]+$`)
	found := 0
	for name, f := range s.files {
		if !f.Immutable {
			continue
		}
		found++
		if !hashed.MatchString(name) {
			t.Errorf("%s has no hash in its name", name)
		}
		if f.ContentType == "text/html; charset=utf-8" {
			t.Errorf("%s is a page", name)
		}
	}
	if found == 0 {
		t.Error("the build has no asset")
	}
}

func TestLoadRefuses(t *testing.T) {
	for _, tt := range []struct{ name, in, want string }{
		{"no page", "assets/a-12345678.js", "no index.html"},
		{"unknown type", "notes.docx", "notes.docx"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := load(fstest.MapFS{tt.in: {}}, ""); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("load: %v; want an error with %q", err, tt.want)
			}
		})
	}
}
