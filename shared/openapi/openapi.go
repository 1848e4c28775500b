// Package openapi owns the published description of the API, and the reference page that renders it.
// lectern.yaml is the source; lectern.json has the same content and is made from it. Tests compare the services,
// the table of routes and the codes of errors with it.
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

// YAML returns the description in YAML (OpenAPI 3.0.3).
func YAML() []byte { return read("lectern.yaml") }

// JSON returns the description in JSON.
func JSON() []byte { return read("lectern.json") }

// InternalYAML returns the description of the internal paths in YAML (OpenAPI 3.0.3). No service serves it.
func InternalYAML() []byte { return read("openapi-internal.yaml") }

// Page returns the reference page, HTML in UTF-8. It is served next to "openapi.json". It loads assets
// only from "docs/".
func Page() []byte { return read("reference/index.html") }

// ErrorsPage returns the page of errors, HTML in UTF-8. Each code of an error is the id of its heading. It is made from
// docs/reference/errors.md.
func ErrorsPage() []byte { return read("reference/errors.html") }

// ErrorsPolicy is the Content-Security-Policy of the page of errors, which has a style and loads nothing.
const ErrorsPolicy = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// PagePolicy is the Content-Security-Policy of the page. It allows the page's own scripts and requests to its own
// host. Scripts create styles, so styles within the page are allowed too.
const PagePolicy = "default-src 'none'; script-src 'self'; connect-src 'self'; style-src 'self' 'unsafe-inline'; " +
	"img-src 'self' data:; font-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// Asset is a file that the page loads.
type Asset struct {
	ContentType string
	// Gzipped is the content compressed by gzip, or nil if it is stored uncompressed.
	Gzipped []byte
	plain   []byte
	// Immutable reports that the name changes with the content, so that clients may cache it forever.
	Immutable bool
}

// FindAsset returns the asset of that name, and reports whether it exists.
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

// Plain returns the uncompressed content.
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

// read returns an embedded file.
func read(name string) []byte {
	b, err := files.ReadFile(name)
	if err != nil {
		panic(err) // it is embedded above
	}
	return b
}
