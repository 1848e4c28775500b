package api

import (
	"net/http"

	"github.com/lectern-dev/lectern/shared/http/apierr"
	"github.com/lectern-dev/lectern/shared/http/httpapi"
	"github.com/lectern-dev/lectern/shared/openapi"
)

const (
	// asked makes caches revalidate before each use, which the ETag makes cheap.
	asked = "public, no-cache"
	// kept lets caches keep for a year an asset whose content never changes under its name (RFC 8246).
	kept = "public, max-age=31536000, immutable"
)

// getDescriptionYAML answers with the published description in YAML.
func getDescriptionYAML(w http.ResponseWriter, r *http.Request) error {
	return static(w, r, "application/yaml", asked, openapi.YAML()) // RFC 9512
}

// getDescriptionJSON answers with the description in JSON.
func getDescriptionJSON(w http.ResponseWriter, r *http.Request) error {
	return static(w, r, "application/json", asked, openapi.JSON())
}

// getReference answers with the page that renders the description.
func getReference(w http.ResponseWriter, r *http.Request) error {
	w.Header().Set("Content-Security-Policy", openapi.PagePolicy)
	w.Header().Set("Referrer-Policy", "no-referrer")
	return static(w, r, "text/html; charset=utf-8", asked, openapi.Page())
}

// getErrorsPage answers with the page of errors.
func getErrorsPage(w http.ResponseWriter, r *http.Request) error {
	w.Header().Set("Content-Security-Policy", openapi.ErrorsPolicy)
	w.Header().Set("Referrer-Policy", "no-referrer")
	return static(w, r, "text/html; charset=utf-8", asked, openapi.ErrorsPage())
}

// redirectToReference sends visitors of the API's address to the reference page.
func redirectToReference(w http.ResponseWriter, _ *http.Request) error {
	w.Header().Set("Location", "/docs")
	w.WriteHeader(http.StatusFound)
	return nil
}

// getReferenceAsset answers with an asset of the page. Clients that accept gzip get it as it is embedded, compressed.
func getReferenceAsset(w http.ResponseWriter, r *http.Request) error {
	name, err := httpapi.PathIdentifier(r, "asset")
	if err != nil {
		return err
	}
	asset, ok := openapi.FindAsset(name)
	if !ok {
		return apierr.NoRoute()
	}
	cache := asked
	if asset.Immutable {
		cache = kept
	}
	if asset.Gzipped != nil && takesGzip(r.Header) {
		w.Header().Set("Content-Encoding", "gzip")
		return static(w, r, asset.ContentType, cache, asset.Gzipped)
	}
	plain, err := asset.Plain()
	if err != nil {
		return err
	}
	return static(w, r, asset.ContentType, cache, plain)
}

// static answers with embedded content.
func static(w http.ResponseWriter, r *http.Request, contentType, cache string, body []byte) error {
	if err := httpapi.ParseQuery(r).Err(); err != nil {
		w.Header().Del("Content-Encoding")
		return err
	}
	w.Header().Set("Cache-Control", cache)
	return httpapi.WriteBody(w, r, contentType, body, "")
}

// takesGzip reports whether the client accepts gzip (RFC 9110, section 12.5.3).
func takesGzip(h http.Header) bool {
	for _, coding := range []string{"gzip", "x-gzip", "*"} {
		if weight, listed := httpapi.Weight(h["Accept-Encoding"], coding); listed {
			return weight > 0
		}
	}
	return false
}
