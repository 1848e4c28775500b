package auth

import (
	"fmt"
	"math/bits"
	"slices"
	"strings"
)

// Scope is one permission of a key.
type Scope uint32

// The scopes that a key can have.
const (
	EntriesRead     Scope = 1 << iota // "entries:read": entries, events, page views
	EmbeddablesRead                   // "embeddables:read": embeddables and their versions
	ExperimentsRead                   // "experiments:read": experiments
	ProxyUse                          // "proxy:use": the credential proxy
)

// Scopes is a set of scopes.
type Scopes uint32

// DefaultScopes are the scopes of a key that is minted without scopes: it reads everything and does not use the
// proxy.
const DefaultScopes = Scopes(EntriesRead | EmbeddablesRead | ExperimentsRead)

var scopeNames = [...]string{"entries:read", "embeddables:read", "experiments:read", "proxy:use"}

// ScopesOf returns the set of scopes.
func ScopesOf(scopes ...Scope) Scopes {
	var set Scopes
	for _, s := range scopes {
		set |= Scopes(s)
	}
	return set
}

// Has reports whether s is in the set.
func (set Scopes) Has(s Scope) bool { return s != 0 && set&Scopes(s) == Scopes(s) }

// Names lists the set's scopes, in the order of the constants.
func (set Scopes) Names() []string {
	names := make([]string, 0, bits.OnesCount32(uint32(set)))
	for i, name := range scopeNames {
		if set.Has(1 << i) {
			names = append(names, name)
		}
	}
	return names
}

// String lists the set's scopes, separated by spaces.
func (set Scopes) String() string { return strings.Join(set.Names(), " ") }

// String returns the scope's name.
func (s Scope) String() string { return Scopes(s).String() }

// ScopeNames lists the names of all scopes, in the order of the constants.
func ScopeNames() []string { return slices.Clone(scopeNames[:]) }

// ScopeNamed returns the scope of exactly that name, and reports whether it exists.
func ScopeNamed(name string) (Scope, bool) {
	i := slices.Index(scopeNames[:], name)
	if i < 0 {
		return 0, false
	}
	return 1 << i, true
}

// ParseScopes parses names of scopes. Each name may be a list, separated by spaces or commas. The error names the
// first unknown scope, and the known ones.
func ParseScopes(names ...string) (Scopes, error) {
	set, unknown := KnownScopes(names...)
	if len(unknown) > 0 {
		return 0, fmt.Errorf("unknown scope %q; known: %s", unknown[0], strings.Join(scopeNames[:], ", "))
	}
	return set, nil
}

// KnownScopes parses names as [ParseScopes] does, and returns the unknown ones separately. A newer version may have
// stored them. They grant nothing here.
func KnownScopes(names ...string) (known Scopes, unknown []string) {
	for _, list := range names {
		for _, name := range strings.FieldsFunc(list, func(r rune) bool { return r == ' ' || r == ',' }) {
			i := 0
			for i < len(scopeNames) && scopeNames[i] != name {
				i++
			}
			if i == len(scopeNames) {
				unknown = append(unknown, name)
				continue
			}
			known |= 1 << i
		}
	}
	return known, unknown
}
