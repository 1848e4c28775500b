// Package api owns the console's routes, their caching, and the headers that restrict the page in a browser.
package api

import (
	"net/http"
	"strings"

	"github.com/lectern-dev/lectern/shared/apierr"
	"github.com/lectern-dev/lectern/shared/http/httpapi"

	"github.com/lectern-dev/lectern/services/console/internal/site"
)

const (
	// asked makes caches ask the server before each use of a file. With the ETag, such a question is cheap.
	asked = "no-cache"
	// kept lets caches keep a file for a year, because the content under the file's path never changes (RFC 8246).
	kept = "public, max-age=31536000, immutable"
)

// policy returns the page's Content-Security-Policy. The page loads files and calls the API from its own origin alone.
// If there is an OpenID provider, the page also connects to the provider's origins. In browsers with Trusted Types, no string in the
// page can become HTML or script.
func policy(provider []string) string {
	return strings.Join([]string{
		"default-src 'none'",
		"script-src 'self'",
		"style-src 'self'",
		"img-src 'self'",
		strings.Join(append([]string{"connect-src 'self'"}, provider...), " "),
		"base-uri 'none'",
		"form-action 'none'",
		"frame-ancestors 'none'",
		"require-trusted-types-for 'script'",
		"trusted-types 'none'",
	}, "; ")
}

// permissions is the page's Permissions-Policy, which denies the page browser features that it does not need, such as
// the camera and the location.
var permissions = strings.Join([]string{
	"accelerometer=()", "autoplay=()", "browsing-topics=()", "camera=()", "display-capture=()", "encrypted-media=()",
	"fullscreen=()", "geolocation=()", "gyroscope=()", "hid=()", "magnetometer=()", "microphone=()", "midi=()", "payment=()",
	"picture-in-picture=()", "publickey-credentials-get=()", "screen-wake-lock=()", "serial=()", "usb=()", "xr-spatial-tracking=()",
}, ", ")

// Headers returns the headers that the console service adds to every answer. provider has the origins of the OpenID
// provider, which the page may connect to.
func Headers(provider []string) http.Header {
	return http.Header{
		"Content-Security-Policy":      {policy(provider)},
		"Cross-Origin-Opener-Policy":   {"same-origin"},
		"Cross-Origin-Resource-Policy": {"same-origin"},
		"Permissions-Policy":           {permissions},
		"Referrer-Policy":              {"no-referrer"},
		"X-Frame-Options":              {"DENY"},
		"Vary":                         {"Accept-Encoding"},
	}
}

// Routes returns a router with every public route of the service. files are the files below site.Root.
func Routes(files *site.Site) *httpapi.Router {
	rt := httpapi.NewRouter()
	rt.Get("/console", redirect)
	rt.Get(site.Root+"{path...}", func(w http.ResponseWriter, r *http.Request) error {
		f, ok := files.Find(strings.TrimPrefix(r.URL.EscapedPath(), site.Root))
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

// redirect answers /console with a permanent redirect to /console/. A browser keeps the fragment of the address.
func redirect(w http.ResponseWriter, _ *http.Request) error {
	w.Header().Set("Location", site.Root)
	w.WriteHeader(http.StatusPermanentRedirect)
	return nil
}
