package httpserver

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/klauspost/compress/gzhttp"
)

// compressFrom is the smallest body that is compressed, in bytes. A smaller one fits a packet anyway.
const compressFrom = 1024

// newCompression returns what wraps a handler so that its body goes out as gzip or zstd. Entity tags
// stay as they are: they are weak, and so hold for every coding.
func newCompression() (func(http.Handler) http.HandlerFunc, error) {
	return gzhttp.NewWrapper(
		gzhttp.MinSize(compressFrom),
		gzhttp.SetContentType(false),
		gzhttp.ContentTypeFilter(compressible))
}

// compressible tells whether a body of this type shrinks.
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

// coding returns the coding that gzhttp chooses for an Accept-Encoding: the more wanted of zstd and
// gzip, zstd when they are wanted alike, empty for none. It is asked beforehand, so that a client that
// takes neither does not pay for the choice, and HEAD can answer as GET would.
func coding(acceptEncoding string) string {
	if acceptEncoding == "" {
		return ""
	}
	gzip, zstd := weight(acceptEncoding, "gzip"), weight(acceptEncoding, "zstd")
	switch {
	case zstd > 0 && zstd >= gzip:
		return "zstd"
	case gzip > 0:
		return "gzip"
	}
	return ""
}

// weight returns how much name is wanted, 0 to 1 (RFC 9110, section 12.5.3).
func weight(acceptEncoding, name string) float64 {
	for part := range strings.SplitSeq(acceptEncoding, ",") {
		coding, parameters, weighted := strings.Cut(part, ";")
		if !strings.EqualFold(strings.TrimSpace(coding), name) {
			continue
		}
		q := 1.0
		for p := range strings.SplitSeq(parameters, ";") {
			p = strings.TrimSpace(p)
			if weighted && len(p) >= 2 && strings.EqualFold(p[:2], "q=") {
				q, _ = strconv.ParseFloat(p[2:], 64) // what is no number counts as 0: not wanted
			}
		}
		return min(max(q, 0), 1)
	}
	return 0
}
