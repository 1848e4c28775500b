// Package api owns the console's routes: how its files are answered, and what its page may do in a browser.
package api

import (
	"net/http"
	"strings"

	"github.com/lectern-dev/lectern/shared/http/apierr"
	"github.com/lectern-dev/lectern/shared/http/httpapi"

	"github.com/lectern-dev/lectern/services/console/internal/site"
)

const (
	root = "/console/"

	// asked makes caches ask before each use; the ETag makes that cheap.
	asked = "no-cache"
	// kept lets caches keep a file for a year, as it never changes under its name (RFC 8246).
	kept = "public, max-age=31536000, immutable"
)

// policy is the page's Content-Security-Policy. The page loads from its own origin alone, and calls the API there. Text
// reaches the document as text: without a policy of Trusted Types, nothing becomes HTML or script.
var policy = strings.Join([]string{
	"default-src 'none'",
	"script-src 'self'",
	"style-src 'self'",
	"img-src 'self'",
	"connect-src 'self'",
	"base-uri 'none'",
	"form-action 'none'",
	"frame-ancestors 'none'",
	"require-trusted-types-for 'script'",
	"trusted-types 'none'",
}, "; ")

// permissions is the Permissions-Policy: the page needs no device, and no interface that others use to follow people.
var permissions = strings.Join([]string{
	"accelerometer=()", "autoplay=()", "browsing-topics=()", "camera=()", "display-capture=()", "encrypted-media=()",
	"fullscreen=()", "geolocation=()", "gyroscope=()", "hid=()", "magnetometer=()", "microphone=()", "midi=()", "payment=()",
	"picture-in-picture=()", "publickey-credentials-get=()", "screen-wake-lock=()", "serial=()", "usb=()", "xr-spatial-tracking=()",
}, ", ")

// Headers returns the headers of every answer.
func Headers() http.Header {
	return http.Header{
		"Content-Security-Policy":      {policy},
		"Cross-Origin-Opener-Policy":   {"same-origin"},
		"Cross-Origin-Resource-Policy": {"same-origin"},
		"Permissions-Policy":           {permissions},
		"Referrer-Policy":              {"no-referrer"},
		"X-Frame-Options":              {"DENY"},
		"Vary":                         {"Accept-Encoding"},
	}
}

// Routes lists every public route of the service.
func Routes(files *site.Site) *httpapi.Router {
	rt := httpapi.NewRouter()
	rt.Get("/console", redirect)
	rt.Get("/console/{path...}", func(w http.ResponseWriter, r *http.Request) error {
		f, ok := files.Find(strings.TrimPrefix(r.URL.EscapedPath(), root))
		if !ok {
			return apierr.NoRoute()
		}
		cache := asked
		if f.Immutable {
			cache = kept
		}
		w.Header().Set("Cache-Control", cache)
		return httpapi.WriteBody(w, r, f.ContentType, f.Body, "")
	})
	return rt
}

// redirect sends the client to the console's one start. A browser keeps the fragment of its address.
func redirect(w http.ResponseWriter, _ *http.Request) error {
	w.Header().Set("Location", root)
	w.WriteHeader(http.StatusPermanentRedirect)
	return nil
}
