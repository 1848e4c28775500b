// Package target parses the target URL of a caller into a scheme, a host, a port, a path and a query. The policy
// decides on the same parsed target that the proxy dials and sends.
//
// The package refuses a URL that parsers may read in different ways. Examples are user info, control characters, a
// backslash in the path, and dot segments that are hidden by encoding. In the host, the package also refuses
// percent-encoding, IPv6 zones, and IPv4 addresses that are not four decimal numbers.
package target

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/lectern-dev/lectern/proxy/hostname"
	"github.com/lectern-dev/lectern/proxy/internal/template"
)

// MaxBytes is the length of the longest target that Parse accepts, in bytes, before values are inserted.
const MaxBytes = 16 << 10

// maxFinal is the greatest length of path and query together, in bytes, with values inserted.
const maxFinal = 64 << 10

// Target is a normalised http or https URL that may hold placeholders in its path and query.
type Target struct {
	Scheme string // "http" or "https"
	Host   string // lower-case ASCII, or an IP address without brackets; no trailing dot
	Port   uint16

	address, authority string // see the methods
	path, query        templated
	hasQuery           bool
}

// templated is a path or a query of a target, with its placeholders stored apart from the text.
type templated struct {
	text  string   // normalised, with a hole for each placeholder
	holes []string // the placeholders as sent
	ids   []string
}

// hole is the byte that marks the position of a placeholder in the text of a templated. A target itself never contains
// the byte, because Parse refuses control characters.
const hole = '\x00'

// fault is the reason why a target is refused, without its subject: "is empty".
type fault string

// Error returns the reason. The reason never contains the value of a credential, so callers may see it.
func (f fault) Error() string { return string(f) }

func refuse(format string, args ...any) error { return fault(fmt.Sprintf(format, args...)) }

// Parse parses and normalises a target URL, and drops its fragment. Callers may see the error, which continues a
// sentence that begins with the target: "is empty".
func Parse(raw string) (*Target, error) {
	switch {
	case raw == "":
		return nil, refuse("is empty")
	case len(raw) > MaxBytes:
		return nil, refuse("is longer than %d bytes", MaxBytes)
	case !utf8.ValidString(raw):
		return nil, refuse("is not valid UTF-8")
	}
	for i := range len(raw) {
		if raw[i] < ' ' || raw[i] == 0x7F {
			return nil, refuse("holds a control character (a tab, a line break or the like)")
		}
	}
	scheme, rest, ok := strings.Cut(raw, "://")
	t := &Target{Scheme: strings.ToLower(scheme)}
	if !ok || t.Scheme != "http" && t.Scheme != "https" {
		return nil, refuse("does not begin with https:// (or http://)")
	}
	rest, _, _ = strings.Cut(rest, "#") // a fragment is never sent
	end := strings.IndexAny(rest, "/?\\")
	if end < 0 {
		end = len(rest)
	}
	if err := t.readAuthority(rest[:end]); err != nil {
		return nil, err
	}
	t.spell()
	path, query, hasQuery := strings.Cut(rest[end:], "?")
	t.hasQuery = hasQuery
	if escape := template.Dangling([]byte(query)); escape != "" {
		return nil, refuse("has %q before a placeholder, which would take a part of the value; write %%25 for a percent sign", escape)
	}
	t.query = newTemplated(query)
	t.query.text = appendQuery(nil, t.query.text)
	t.path = newTemplated(path)
	var err error
	if t.path.text, err = normalPath(t.path.text); err != nil {
		return nil, err
	}
	return t, nil
}

// readAuthority sets Host and Port from the host and port of a URL. Without a port in the URL, Port is the default port
// of the scheme. The error refuses user info, placeholders, percent-encoding, and an invalid host or port.
func (t *Target) readAuthority(authority string) error {
	switch {
	case strings.Contains(authority, "{{"):
		return refuse("has a placeholder in its host or port; placeholders may stand in the path and the query")
	case strings.Contains(authority, "@"):
		return refuse("has user info; send an Authorization header instead")
	case strings.Contains(authority, "%"):
		return refuse("has percent-encoding in its host")
	}
	host, port := authority, ""
	if strings.HasPrefix(authority, "[") {
		inside, after, ok := strings.Cut(authority[1:], "]")
		if !ok || after != "" && after[0] != ':' {
			return hostname.ErrInvalid
		}
		host, port = "["+inside+"]", strings.TrimPrefix(after, ":")
	} else if name, p, ok := strings.Cut(authority, ":"); ok {
		host, port = name, p
	}
	var err error
	if t.Host, err = hostname.Normal(host); err != nil {
		return err
	}
	t.Port = DefaultPort(t.Scheme)
	if port == "" {
		return nil
	}
	for i := range len(port) {
		if port[i] < '0' || port[i] > '9' {
			return refuse("has a port that is no number")
		}
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || n == 0 {
		return refuse("has a port that is not from 1 to 65535")
	}
	t.Port = uint16(n)
	return nil
}

// DefaultPort returns the port of an http or https URL that names no port: 80 or 443.
func DefaultPort(scheme string) uint16 {
	if scheme == "http" {
		return 80
	}
	return 443
}

// Address returns host:port, which the proxy dials. An IPv6 host is in brackets.
func (t *Target) Address() string { return t.address }

// Authority returns the value of the Host header: the host, and the port unless it is the scheme's default.
func (t *Target) Authority() string { return t.authority }

// spell sets the results of Address and Authority from the scheme, the host and the port.
func (t *Target) spell() {
	host := t.Host
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	t.address, t.authority = host+":"+strconv.Itoa(int(t.Port)), host
	if t.Port != DefaultPort(t.Scheme) {
		t.authority = t.address
	}
}

// Origin returns scheme://host[:port], without the port if it is the default port of the scheme.
func (t *Target) Origin() string { return t.Scheme + "://" + t.Authority() }

// AsSent returns scheme://host[:port]/path, with the placeholders as the caller sent them, and without the query. The
// policy compares the result with the destinations that it allows.
func (t *Target) AsSent() string {
	return t.Origin() + t.path.fill(func(dst []byte, i int) []byte { return append(dst, t.path.holes[i]...) })
}

// URL returns the normalised target with its query, and with the placeholders as the caller sent them.
func (t *Target) URL() string {
	if !t.hasQuery {
		return t.AsSent()
	}
	return t.AsSent() + "?" + t.query.fill(func(dst []byte, i int) []byte { return append(dst, t.query.holes[i]...) })
}

// IDs returns the ids of the placeholders in path and query, in order and with repetitions.
func (t *Target) IDs() []string {
	if len(t.query.ids) == 0 {
		return t.path.ids
	}
	return append(t.path.ids[:len(t.path.ids):len(t.path.ids)], t.query.ids...)
}

// Final is a target whose placeholders are replaced with values.
type Final struct {
	// Match is scheme://host[:port]/path, with the values in the path. The policy compares Match with the destinations,
	// as before with AsSent.
	Match string
	// Path and Query are the parts that the proxy sends, percent-encoded. Query does not contain the "?".
	Path, Query string
	// HasQuery distinguishes "/?" from "/".
	HasQuery bool
}

// Finish replaces each placeholder with the percent-encoded value that the function value returns for its id. The error
// refuses values after which the path may hide dot segments, and a path and query longer than maxFinal.
func (t *Target) Finish(value func(id string) []byte) (Final, error) {
	written := map[string][]byte{} // encodes each value once
	for _, id := range t.IDs() {
		if _, ok := written[id]; !ok {
			written[id] = template.AppendURL(nil, value(id))
		}
	}
	if t.path.size(written)+t.query.size(written) > maxFinal {
		return Final{}, refuse("is too long with its credentials in it")
	}
	f := Final{HasQuery: t.hasQuery}
	f.Path = t.path.fill(func(dst []byte, i int) []byte { return append(dst, written[t.path.ids[i]]...) })
	f.Query = t.query.fill(func(dst []byte, i int) []byte { return append(dst, written[t.query.ids[i]]...) })
	if len(t.path.ids) > 0 && hidesDots(f.Path) {
		return Final{}, refuse("becomes another path with its credential in it")
	}
	f.Match = t.Origin() + f.Path
	return f, nil
}

// newTemplated replaces each placeholder in text with a hole, and stores the placeholders and their ids in order.
func newTemplated(text string) templated {
	m := templated{text: text}
	rest := []byte(text)
	var out []byte
	for {
		from, to, id, ok := template.Find(rest)
		if !ok {
			break
		}
		m.holes = append(m.holes, string(rest[from:to]))
		m.ids = append(m.ids, string(id))
		out = append(append(out, rest[:from]...), hole)
		rest = rest[to:]
	}
	if out != nil {
		m.text = string(append(out, rest...))
	}
	return m
}

// size returns the length of the text in bytes, with a value in each hole. values holds the value of each id.
func (m *templated) size(values map[string][]byte) int {
	n := len(m.text) - len(m.ids)
	for _, id := range m.ids {
		n += len(values[id])
	}
	return n
}

// fill returns the text with each hole replaced by the bytes that put appends to dst. i is the number of the hole, from
// 0.
func (m *templated) fill(put func(dst []byte, i int) []byte) string {
	if len(m.holes) == 0 {
		return m.text
	}
	var dst []byte
	n := 0
	for i := range len(m.text) {
		if m.text[i] == hole {
			dst = put(dst, n)
			n++
			continue
		}
		dst = append(dst, m.text[i])
	}
	return string(dst)
}
