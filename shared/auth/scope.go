package auth

import (
	"fmt"
	"math/bits"
	"strings"
)

// Scope is one permission of a key: one bit of a [Scopes].
type Scope uint32

// The scopes that a key can have, each with the records or the service that the scope opens.
const (
	EntriesRead     Scope = 1 << iota // entries, events, page views
	EmbeddablesRead                   // embeddables and their versions
	ExperimentsRead                   // experiments
	ProxyUse                          // the credential proxy
)

// scopeNames are the names of the scopes.
var scopeNames = []struct {
	scope Scope
	name  string
}{
	{EntriesRead, "entries:read"}, {EmbeddablesRead, "embeddables:read"}, {ExperimentsRead, "experiments:read"}, {ProxyUse, "proxy:use"},
}

// Scopes is a set of permissions, with one bit for each [Scope]. The zero value is the empty set.
type Scopes uint32

// DefaultScopes are the scopes of a key that is minted without scopes. Such a key can read everything and cannot use
// the proxy.
const DefaultScopes = Scopes(EntriesRead | EmbeddablesRead | ExperimentsRead)

// ScopesOf returns the set that contains the given scopes, or the empty set if none are given.
func ScopesOf(scopes ...Scope) Scopes {
	var set Scopes
	for _, s := range scopes {
		set |= Scopes(s)
	}
	return set
}

// Has reports whether s is in the set. The zero Scope is in no set.
func (set Scopes) Has(s Scope) bool { return s != 0 && set&Scopes(s) == Scopes(s) }

// Names returns the names of the set's scopes, such as "entries:read", in the order of the constants. Unknown bits have
// no name.
func (set Scopes) Names() []string {
	names := make([]string, 0, bits.OnesCount32(uint32(set)))
	for _, s := range scopeNames {
		if set.Has(s.scope) {
			names = append(names, s.name)
		}
	}
	return names
}

// String returns the names of the set's scopes, separated by spaces.
func (set Scopes) String() string { return strings.Join(set.Names(), " ") }

// String returns the scope's name, such as "entries:read", or "" for an unknown scope.
func (s Scope) String() string { return Scopes(s).String() }

// ScopeNames lists the names of all scopes, in the order of the constants.
func ScopeNames() []string { return Scopes(^uint32(0)).Names() }

// ScopeNamed returns the scope with exactly the given name, and reports whether such a scope exists.
func ScopeNamed(name string) (Scope, bool) {
	for _, s := range scopeNames {
		if s.name == name {
			return s.scope, true
		}
	}
	return 0, false
}

// ParseScopes parses names of scopes. Each name may be a list, separated by spaces or commas. The error names the first
// unknown scope, and all known scopes.
func ParseScopes(names ...string) (Scopes, error) {
	set, unknown := KnownScopes(names...)
	if len(unknown) > 0 {
		return 0, fmt.Errorf("unknown scope %q; known: %s", unknown[0], strings.Join(ScopeNames(), ", "))
	}
	return set, nil
}

// KnownScopes parses names as [ParseScopes] does, and returns unknown names separately. A newer version of the program
// may have stored the unknown names. An unknown name grants nothing here.
func KnownScopes(names ...string) (known Scopes, unknown []string) {
	for _, list := range names {
		for _, name := range strings.FieldsFunc(list, func(r rune) bool { return r == ' ' || r == ',' }) {
			if s, ok := ScopeNamed(name); ok {
				known |= Scopes(s)
			} else {
				unknown = append(unknown, name)
			}
		}
	}
	return known, unknown
}
