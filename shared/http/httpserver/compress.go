package httpserver

import (
	"net/http"
	"strings"

	"github.com/klauspost/compress/gzhttp"

	"github.com/lectern-dev/lectern/shared/http/httpapi"
)

// compressFrom is the smallest body that the server compresses, in bytes. A smaller body fits into one packet anyway.
const compressFrom = 1024

// newCompression returns a wrapper that compresses a handler's body with gzip or zstd. Small bodies and types that are
// not [compressible] stay as they are. The wrapper does not change entity tags.
func newCompression() (func(http.Handler) http.HandlerFunc, error) {
	return gzhttp.NewWrapper(
		gzhttp.MinSize(compressFrom),
		gzhttp.SetContentType(false),
		gzhttp.ContentTypeFilter(compressible))
}

// compressible reports whether the server compresses bodies of this Content-Type. Most images and archives are
// compressed already.
func compressible(contentType string) bool {
	name, _, _ := strings.Cut(contentType, ";")
	name = strings.ToLower(strings.TrimSpace(name))
	switch name {
	case "application/json", "application/x-ndjson", "application/yaml", "application/javascript",
		"application/xml", "image/svg+xml":
		return true
	}
	return strings.HasPrefix(name, "text/") || strings.HasSuffix(name, "+json")
}

// coding returns the coding that gzhttp would choose by the Accept-Encoding in the headers: zstd, gzip, or "" for none. The
// coding with the greater weight wins, and zstd wins a tie.
func coding(h http.Header) string {
	accepted := h["Accept-Encoding"]
	if len(accepted) == 0 {
		return ""
	}
	accepted = accepted[:1] // gzhttp reads no more
	gzip, _ := httpapi.Weight(accepted, "gzip")
	zstd, _ := httpapi.Weight(accepted, "zstd")
	switch {
	case zstd > 0 && zstd >= gzip:
		return "zstd"
	case gzip > 0:
		return "gzip"
	}
	return ""
}
