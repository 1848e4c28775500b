package httpapi

import (
	"strconv"
	"strings"
)

// Weight returns the weight that the values of an Accept or Accept-Encoding header give to name, from 0 to 1. It
// reports whether they list name (RFC 9110, section 12.4.2). The first mention of name counts. Its weight is 1 if
// none is given, and 0 if the weight is not a number.
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

// quality returns the parameter q of a member of the header, or 1 if there is none.
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
