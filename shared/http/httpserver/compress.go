package httpserver

import (
	"net/http"
	"strings"

	"github.com/klauspost/compress/gzhttp"

	"github.com/lectern-dev/lectern/shared/http/httpapi"
)

// compressFrom is the smallest body that is compressed, in bytes. A smaller one fits one packet anyway.
const compressFrom = 1024

// newCompression returns a wrapper that compresses a handler's body with gzip or zstd. Entity tags stay as they are:
// they are weak, and so hold for every coding.
func newCompression() (func(http.Handler) http.HandlerFunc, error) {
	return gzhttp.NewWrapper(
		gzhttp.MinSize(compressFrom),
		gzhttp.SetContentType(false),
		gzhttp.ContentTypeFilter(compressible))
}

// compressible reports whether bodies of this type shrink.
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

// coding returns the coding that gzhttp chooses for the headers of a request. It is zstd or gzip, by their weights, zstd
// if the weights are equal, or "" for none. With it, requests without a coding need not pass through gzhttp, and
// answers to HEAD have the headers of GET.
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
