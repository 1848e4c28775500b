package api

import (
	"net/http"

	"github.com/lectern-dev/lectern/shared/apierr"
	"github.com/lectern-dev/lectern/shared/http/httpapi"
	"github.com/lectern-dev/lectern/shared/openapi"
)

const (
	// asked is the Cache-Control with which caches ask the server before each use. The ETag makes such a request
	// cheap.
	asked = "public, no-cache"
	// kept is the Cache-Control with which caches keep an asset for a year (RFC 8246). The content of such an asset
	// never changes under its name.
	kept = "public, max-age=31536000, immutable"
)

// getDescriptionYAML serves GET /openapi.yaml: the published description of the API in YAML.
func getDescriptionYAML(w http.ResponseWriter, r *http.Request) error {
	return static(w, r, "application/yaml", asked, openapi.YAML()) // RFC 9512
}

// getDescriptionJSON serves GET /openapi.json: the published description of the API in JSON.
func getDescriptionJSON(w http.ResponseWriter, r *http.Request) error {
	return static(w, r, "application/json", asked, openapi.JSON())
}

// getReference serves GET /docs: the page that shows the published description of the API.
func getReference(w http.ResponseWriter, r *http.Request) error {
	w.Header().Set("Content-Security-Policy", openapi.PagePolicy)
	w.Header().Set("Referrer-Policy", "no-referrer")
	return static(w, r, "text/html; charset=utf-8", asked, openapi.Page())
}

// getErrorsPage serves GET /docs/errors: the page that explains the error codes of the API.
func getErrorsPage(w http.ResponseWriter, r *http.Request) error {
	w.Header().Set("Content-Security-Policy", openapi.ErrorsPolicy)
	w.Header().Set("Referrer-Policy", "no-referrer")
	return static(w, r, "text/html; charset=utf-8", asked, openapi.ErrorsPage())
}

// redirectToReference serves GET /: it redirects the client to the reference page at /docs.
func redirectToReference(w http.ResponseWriter, _ *http.Request) error {
	w.Header().Set("Location", "/docs")
	w.WriteHeader(http.StatusFound)
	return nil
}

// getReferenceAsset serves GET /docs/{asset}: a file of the reference page. A client that accepts gzip gets the
// compressed form of the file, if there is one.
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

// static answers with body, an embedded file, and with cache as the Cache-Control. static refuses any query
// parameter.
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
