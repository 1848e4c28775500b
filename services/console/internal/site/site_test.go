package site

import (
	"bytes"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// TestAddressesChangeWithContent checks that a change of any asset gives all assets new addresses. Browsers keep an asset
// for a year, and an asset names the assets that it loads by relative addresses.
func TestAddressesChangeWithContent(t *testing.T) {
	build := func(provider string) *Site {
		s, err := load(fstest.MapFS{
			page:                 {Data: []byte(`<script src="./assets/index.js"></script>`)},
			"assets/index.js":    {Data: []byte(`import("./provider.js")`)},
			"assets/provider.js": {Data: []byte(provider)},
		}, "")
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	old, same, changed := build("1"), build("1"), build("2")
	if want, got := slices.Sorted(maps.Keys(old.files)), slices.Sorted(maps.Keys(same.files)); !slices.Equal(want, got) {
		t.Errorf("the same build has other addresses: %q, then %q", want, got)
	}
	for address, f := range old.files {
		if f.Immutable != (address != page) {
			t.Errorf("%s: immutable is %t", address, f.Immutable)
		}
		if _, found := changed.Find(address); f.Immutable && found {
			t.Errorf("%s is also an address of the changed build", address)
		}
		if f.Immutable && strings.HasSuffix(address, "/index.js") && !bytes.Contains(old.files[page].Body, []byte(`"`+Root+address+`"`)) {
			t.Errorf("the page does not name %s: %s", address, old.files[page].Body)
		}
	}
}

// TestAssetsNameNoAddress checks that the build writes relative addresses into assets. An absolute one would lack the
// folder of the build.
func TestAssetsNameNoAddress(t *testing.T) {
	s, err := Load("")
	if err != nil {
		t.Fatal(err)
	}
	for name, f := range s.files {
		if f.Immutable && bytes.Contains(f.Body, []byte(Root+assets)) {
			t.Errorf("%s has an address below %s", name, Root+assets)
		}
	}
	if len(s.files) < 4 {
		t.Errorf("the build has %d files", len(s.files))
	}
}

func TestLoadRefuses(t *testing.T) {
	for _, tt := range []struct{ name, in, want string }{
		{"no page", "assets/a.js", "no index.html"},
		{"unknown type", "notes.docx", "notes.docx"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := load(fstest.MapFS{tt.in: {}}, ""); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("load: %v; want an error with %q", err, tt.want)
			}
		})
	}
}
