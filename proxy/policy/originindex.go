package policy

import (
	"iter"
	"strings"
)

// originIndex finds the endpoints of all projects that allow an origin. It looks up domains in a map. It tries each
// pattern once, no matter how many endpoints share it.
type originIndex struct {
	domains  map[string][]*Endpoint
	patterns []originPattern
}

// originPattern is a pattern, and the endpoints that have the pattern among their origins.
type originPattern struct {
	rule      Rule
	endpoints []*Endpoint
}

func newOriginIndex(endpoints []*Endpoint) originIndex {
	x := originIndex{domains: map[string][]*Endpoint{}}
	at := map[string]int{} // in patterns, by source
	for _, e := range endpoints {
		for _, r := range e.Origins {
			if r.pattern == nil {
				x.domains[r.domain] = append(x.domains[r.domain], e)
				continue
			}
			i, known := at[r.source]
			if !known {
				i = len(x.patterns)
				at[r.source] = i
				x.patterns = append(x.patterns, originPattern{rule: r})
			}
			x.patterns[i].endpoints = append(x.patterns[i].endpoints, e)
		}
	}
	return x
}

// endpoints returns the endpoints of all projects that allow the origin, and no endpoint for "". It may return an
// endpoint more than once.
func (x *originIndex) endpoints(origin string) iter.Seq[*Endpoint] {
	return func(yield func(*Endpoint) bool) {
		if !ValidOrigin(origin) {
			return
		}
		host, secure := strings.CutPrefix(origin, "https://")
		for secure && host != "" { // a host with a port matches no domain
			for _, e := range x.domains[host] {
				if !yield(e) {
					return
				}
			}
			_, host, _ = strings.Cut(host, ".")
		}
		for _, p := range x.patterns {
			if !p.rule.allowsOrigin(origin) {
				continue
			}
			for _, e := range p.endpoints {
				if !yield(e) {
					return
				}
			}
		}
	}
}
