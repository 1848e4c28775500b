package httpapi

import (
	"strconv"
	"strings"
)

// Weight returns the weight of the first mention of name in an Accept or Accept-Encoding header (RFC 9110). A mention
// without a weight has 1, and a mention whose weight cannot be parsed has 0. listed reports whether the header mentions
// name. Without a mention, the weight is 0. Wildcards are no mention.
func Weight(values []string, name string) (weight float64, listed bool) {
	for _, value := range values {
		for part := range strings.SplitSeq(value, ",") {
			candidate, parameters, _ := strings.Cut(part, ";")
			if strings.EqualFold(strings.TrimSpace(candidate), name) {
				return quality(parameters), true
			}
		}
	}
	return 0, false
}

// quality returns the weight in the parameters of one element of a header: the value of q, or 1 without q. For a q that
// cannot be parsed, quality returns 0.
func quality(parameters string) float64 {
	for p := range strings.SplitSeq(parameters, ";") {
		name, value, _ := strings.Cut(strings.TrimSpace(p), "=")
		if !strings.EqualFold(name, "q") {
			continue
		}
		q, err := strconv.ParseFloat(value, 64)
		if err != nil {
			return 0
		}
		return min(max(q, 0), 1)
	}
	return 1
}
