package manifest

import (
	"bytes"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/net/http/httpguts"

	"github.com/lectern-dev/lectern/proxy/policy"
	"github.com/lectern-dev/lectern/proxy/secret"
)

// Fault is one thing that is wrong with manifests. It never holds a Secret's value.
type Fault struct {
	Place  Place
	Object string // kind/name
	Reason string
}

// Error gives file, line, object and reason.
func (f *Fault) Error() string {
	var b strings.Builder
	if f.Place.File != "" {
		fmt.Fprintf(&b, "%s:%d: ", f.Place.File, f.Place.Line)
	}
	if f.Object != "" {
		b.WriteString(f.Object + ": ")
	}
	b.WriteString(f.Reason)
	return b.String()
}

// Build makes a snapshot of objects. The error joins a [*Fault] for each thing that is wrong; warnings are
// faults that do not keep the rest from working. The snapshot owns copies of the values.
func Build(o Objects) (s *policy.Snapshot, warnings []*Fault, err error) {
	b := builder{secrets: map[objectKey]*Secret{}, ids: map[credentialKey]string{}, names: map[string]bool{}}
	for i := range o.Secrets {
		m := o.Secrets[i].Metadata
		b.at, b.object = o.Secrets[i].At, "Secret/"+m.Name
		b.checkName(m)
		key := objectKey{m.Namespace, m.Name}
		if b.secrets[key] != nil {
			b.fault("metadata.name", "there are two Secrets of this name")
		}
		b.secrets[key] = &o.Secrets[i]
	}
	for i := range o.Credentials {
		b.credential(&o.Credentials[i])
	}
	for i := range o.Endpoints {
		b.endpoint(&o.Endpoints[i])
	}
	if len(b.faults) == 0 {
		s, err = policy.NewSnapshot(b.endpoints, b.credentials)
		if err == nil {
			return s, b.warnings, nil
		}
		b.faults = append(b.faults, err)
	}
	for _, c := range b.credentials {
		c.Value.Zero()
	}
	return nil, b.warnings, errors.Join(b.faults...)
}

type objectKey struct{ namespace, name string }

type credentialKey struct{ project, environment, id string }

type builder struct {
	at     func(field string) Place // of the object in hand
	object string

	secrets map[objectKey]*Secret
	ids     map[credentialKey]string // to the object's name
	names   map[string]bool          // kind, namespace and name
	short   map[credentialKey]bool

	endpoints   []*policy.Endpoint
	credentials []*policy.Credential
	faults      []error
	warnings    []*Fault
}

func (b *builder) place(field string) Place {
	if b.at == nil {
		return Place{}
	}
	return b.at(field)
}

func (b *builder) fault(field, format string, args ...any) {
	b.faults = append(b.faults, &Fault{Place: b.place(field), Object: b.object, Reason: field + ": " + fmt.Sprintf(format, args...)})
}

func (b *builder) warn(field, format string, args ...any) {
	b.warnings = append(b.warnings, &Fault{Place: b.place(field), Object: b.object, Reason: field + ": " + fmt.Sprintf(format, args...)})
}

func (b *builder) checkName(m Metadata) {
	if m.Name == "" || len(m.Name) > 253 {
		b.fault("metadata.name", "is to have 1 to 253 characters")
	}
}

func (b *builder) checkIdentifier(field, value string) {
	if value == "" || len(value) > 256 || !utf8.ValidString(value) || strings.ContainsRune(value, 0) {
		b.fault(field, "is to have 1 to 256 bytes of UTF-8")
	}
}

func (b *builder) unique(kind string, m Metadata) {
	key := kind + "/" + m.Namespace + "/" + m.Name
	if b.names[key] {
		b.fault("metadata.name", "there are two %ss of this name", kind)
	}
	b.names[key] = true
}

func (b *builder) credential(o *Credential) {
	b.at, b.object = o.At, "Credential/"+o.Metadata.Name
	b.checkName(o.Metadata)
	b.unique("Credential", o.Metadata)
	b.checkIdentifier("spec.project", o.Spec.Project)
	b.checkIdentifier("spec.environment", o.Spec.Environment)
	c := &policy.Credential{ID: o.Spec.ID, Project: o.Spec.Project, Environment: o.Spec.Environment}
	if !policy.ValidID(c.ID) {
		b.fault("spec.id", "is %q; allowed: cred_ and 1 to 64 letters, digits, _ or -", c.ID)
	}
	key := credentialKey{c.Project, c.Environment, c.ID}
	if other, taken := b.ids[key]; taken {
		b.fault("spec.id", "is %q, as is that of Credential/%s in the same project and environment", c.ID, other)
	}
	b.ids[key] = o.Metadata.Name
	c.Destinations = b.rules("spec.destinations", o.Spec.Destinations)
	for i, name := range o.Spec.Places {
		p, err := policy.ParsePlace(name)
		if err != nil {
			b.fault(fmt.Sprintf("spec.places[%d]", i), "%v", err)
		}
		c.Places |= p
	}
	c.Value = b.value(o)
	if n := c.Value.Len(); n > 0 && n < policy.MinScrubbed {
		if b.short == nil {
			b.short = map[credentialKey]bool{}
		}
		b.short[key] = true
	}
	b.credentials = append(b.credentials, c)
}

// value copies a credential's value out of its Secret.
func (b *builder) value(o *Credential) secret.Value {
	const field = "spec.valueFrom.secretKeyRef"
	ref := o.Spec.ValueFrom.SecretKeyRef
	if ref.Name == "" || ref.Key == "" {
		b.fault(field, "name and key are required")
		return secret.Value{}
	}
	s := b.secrets[objectKey{o.Metadata.Namespace, ref.Name}]
	if s == nil {
		b.fault(field, "there is no Secret %q", ref.Name)
		return secret.Value{}
	}
	v, ok := s.Data[ref.Key]
	switch {
	case !ok:
		b.fault(field, "the Secret %q has no key %q", ref.Name, ref.Key)
	case len(v) == 0:
		b.fault(field, "the key %q of the Secret %q is empty", ref.Key, ref.Name)
	case len(v) > policy.MaxValue:
		b.fault(field, "the key %q of the Secret %q has %d bytes; allowed: up to %d", ref.Key, ref.Name, len(v), policy.MaxValue)
	default:
		if end := v[len(v)-1]; end == '\n' || end == '\r' {
			b.warn(field, "the key %q of the Secret %q ends in a line break, which is taken as a part of the value", ref.Key, ref.Name)
		}
		return secret.New(bytes.Clone(v))
	}
	return secret.Value{}
}

func (b *builder) rules(field string, specs []RuleSpec) []policy.Rule {
	rules := make([]policy.Rule, 0, len(specs))
	for i, spec := range specs {
		at := fmt.Sprintf("%s[%d]", field, i)
		var (
			r   policy.Rule
			err error
		)
		switch {
		case (spec.Domain == "") == (spec.Pattern == ""):
			b.fault(at, "exactly one of domain and pattern is to be set")
			continue
		case spec.Domain != "":
			at += ".domain"
			r, err = policy.Domain(spec.Domain)
		default:
			at += ".pattern"
			r, err = policy.Pattern(spec.Pattern)
		}
		if err != nil {
			b.fault(at, "%v", err)
			continue
		}
		rules = append(rules, r)
	}
	return rules
}

func (b *builder) endpoint(o *ProxyEndpoint) {
	b.at, b.object = o.At, "ProxyEndpoint/"+o.Metadata.Name
	b.checkName(o.Metadata)
	b.unique("ProxyEndpoint", o.Metadata)
	b.checkIdentifier("spec.project", o.Spec.Project)
	b.checkIdentifier("spec.environment", o.Spec.Environment)
	e := &policy.Endpoint{
		Name: o.Metadata.Name, Project: o.Spec.Project, Environment: o.Spec.Environment,
		Origins:      b.rules("spec.origins", o.Spec.Origins),
		Destinations: b.rules("spec.destinations", o.Spec.Destinations),
		AllowHTTP:    o.Spec.AllowHTTP,
		KeepSecrets:  o.Spec.Scrub.Disabled, PassUnreadable: o.Spec.Scrub.PassUnreadable,
	}
	if o.Metadata.Namespace != "" {
		e.Name = o.Metadata.Namespace + "/" + o.Metadata.Name
	}
	switch o.Spec.Access {
	case "", "origin":
		if len(o.Spec.Origins) == 0 {
			b.fault("spec.origins", "at least one is required with access origin")
		}
	case "key":
		e.Access = policy.ByKey
	default:
		b.fault("spec.access", "is %q; allowed: origin, key", o.Spec.Access)
	}
	if len(o.Spec.Destinations) == 0 {
		b.fault("spec.destinations", "at least one is required")
	}
	for i, m := range o.Spec.Methods {
		if !httpguts.ValidHeaderFieldName(m) || m == "CONNECT" { // a method is a token, as a header's name is
			b.fault(fmt.Sprintf("spec.methods[%d]", i), "is %q; allowed: a method other than CONNECT, such as GET", m)
		}
		e.Methods = append(e.Methods, m)
	}
	for i, p := range o.Spec.Ports {
		if p < 1 || p > 65535 {
			b.fault(fmt.Sprintf("spec.ports[%d]", i), "is %d; allowed: 1 to 65535", p)
			continue
		}
		e.Ports = append(e.Ports, uint16(p))
	}
	for i, id := range o.Spec.Credentials {
		key, field := credentialKey{e.Project, e.Environment, id}, fmt.Sprintf("spec.credentials[%d]", i)
		if _, known := b.ids[key]; !known {
			b.fault(field, "there is no Credential with the id %q in project %q, environment %q", id, e.Project, e.Environment)
		}
		if b.short[key] && !e.KeepSecrets {
			b.warn(field, "the value of %s has fewer than %d bytes, and so can not be used where answers are scrubbed", id, policy.MinScrubbed)
		}
		e.Credentials = append(e.Credentials, id)
	}
	if o.Spec.CABundle != "" {
		e.Roots = x509.NewCertPool()
		if !e.Roots.AppendCertsFromPEM([]byte(o.Spec.CABundle)) {
			b.fault("spec.caBundle", "holds no certificate in PEM")
		}
		sum := sha256.Sum256([]byte(o.Spec.CABundle))
		e.RootsID = hex.EncodeToString(sum[:])
	}
	b.limits(e, o.Spec.Limits)
	b.timeouts(e, o.Spec.Timeouts)
	b.endpoints = append(b.endpoints, e)
}

func (b *builder) limits(e *policy.Endpoint, l LimitsSpec) {
	for _, n := range []struct {
		field string
		value int64
	}{
		{"requestsPerSecond", int64(l.RequestsPerSecond)}, {"burst", int64(l.Burst)}, {"concurrent", int64(l.Concurrent)},
		{"requestBytes", l.RequestBytes}, {"responseBytes", l.ResponseBytes},
	} {
		const most = 1 << 50
		if n.value < 0 || n.value > most || !strings.HasSuffix(n.field, "Bytes") && n.value > 1_000_000 {
			b.fault("spec.limits."+n.field, "is out of range: %d", n.value)
		}
	}
	e.Limits = policy.Limits{
		PerSecond: l.RequestsPerSecond, Burst: l.Burst, Concurrent: l.Concurrent,
		RequestBytes: l.RequestBytes, ResponseBytes: l.ResponseBytes,
	}
	if e.Limits.Burst == 0 {
		e.Limits.Burst = 2 * l.RequestsPerSecond
	}
	if e.Limits.Concurrent == 0 {
		e.Limits.Concurrent = policy.DefaultConcurrent
	}
}

func (b *builder) timeouts(e *policy.Endpoint, t TimeoutsSpec) {
	for _, d := range []struct {
		field   string
		given   Duration
		to      *time.Duration
		unset   time.Duration
		longest time.Duration
	}{
		{"connect", t.Connect, &e.Timeouts.Connect, policy.DefaultConnectTimeout, time.Minute},
		{"headers", t.Headers, &e.Timeouts.Headers, policy.DefaultHeadersTimeout, time.Hour},
		{"idle", t.Idle, &e.Timeouts.Idle, policy.DefaultIdleTimeout, 24 * time.Hour},
		{"total", t.Total, &e.Timeouts.Total, 0, 7 * 24 * time.Hour},
	} {
		if d.given < 0 || time.Duration(d.given) > d.longest {
			b.fault("spec.timeouts."+d.field, "is %s; allowed: up to %s", time.Duration(d.given), d.longest)
		}
		*d.to = time.Duration(d.given)
		if d.given == 0 {
			*d.to = d.unset
		}
	}
}
