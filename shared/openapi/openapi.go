// Package openapi owns the published description of the API, and the reference page that renders the description. The
// source is lectern.yaml, from which lectern.json is made. Tests compare the services, the table of routes and the
// codes of errors with the description.
package openapi

import (
	"bytes"
	"compress/gzip"
	"embed"
	"fmt"
	"io"
	"path"
	"strings"
)

//go:embed lectern.yaml lectern.json openapi-internal.yaml reference/index.html reference/errors.html reference/start.js reference/scalar-*.js.gz
var files embed.FS

// YAML returns the description of the API in YAML (OpenAPI 3.0.3).
func YAML() []byte { return read("lectern.yaml") }

// JSON returns the description of the API in JSON (OpenAPI 3.0.3).
func JSON() []byte { return read("lectern.json") }

// InternalYAML returns the description of the internal paths in YAML (OpenAPI 3.0.3), for tests. No service serves this
// description.
func InternalYAML() []byte { return read("openapi-internal.yaml") }

// Page returns the reference page of the API, HTML in UTF-8. A server serves the page next to "openapi.json". The page
// loads assets only from "docs/".
func Page() []byte { return read("reference/index.html") }

// ErrorsPage returns the page of errors, HTML in UTF-8, which is made from docs/reference/errors.md. The id of a code's
// heading is the code.
func ErrorsPage() []byte { return read("reference/errors.html") }

// ErrorsPolicy is the Content-Security-Policy of the page of errors, which has a style and loads nothing.
const ErrorsPolicy = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// PagePolicy is the Content-Security-Policy of the reference page. The policy allows the page's own scripts and
// requests to its own host. The scripts create styles, so the policy also allows styles within the page.
const PagePolicy = "default-src 'none'; script-src 'self'; connect-src 'self'; style-src 'self' 'unsafe-inline'; " +
	"img-src 'self' data:; font-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// Asset is a script that the reference page loads.
type Asset struct {
	ContentType string
	// Gzipped is the content compressed by gzip, or nil if it is stored uncompressed.
	Gzipped []byte
	plain   []byte
	// Immutable reports that the name changes with the content, so that clients may cache it forever.
	Immutable bool
}

// FindAsset returns the asset with the name, and reports whether there is such an asset.
func FindAsset(name string) (Asset, bool) {
	if strings.Contains(name, "/") || path.Ext(name) != ".js" {
		return Asset{}, false
	}
	const contentType = "text/javascript; charset=utf-8"
	if b, err := files.ReadFile("reference/" + name + ".gz"); err == nil {
		return Asset{ContentType: contentType, Gzipped: b, Immutable: true}, true
	}
	if b, err := files.ReadFile("reference/" + name); err == nil {
		return Asset{ContentType: contentType, plain: b}, true
	}
	return Asset{}, false
}

// Plain returns the uncompressed content of the asset, for a client that does not accept gzip.
func (a Asset) Plain() ([]byte, error) {
	if a.Gzipped == nil {
		return a.plain, nil
	}
	z, err := gzip.NewReader(bytes.NewReader(a.Gzipped))
	if err != nil {
		return nil, fmt.Errorf("openapi: asset: %w", err)
	}
	b, err := io.ReadAll(z)
	if err != nil {
		return nil, fmt.Errorf("openapi: asset: %w", err)
	}
	return b, nil
}

// read returns the content of an embedded file. read panics if the file does not exist, which is a mistake in the
// program.
func read(name string) []byte {
	b, err := files.ReadFile(name)
	if err != nil {
		panic(err) // the file is embedded above
	}
	return b
}
