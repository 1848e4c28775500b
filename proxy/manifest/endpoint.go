package manifest

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"

	"github.com/lectern-dev/lectern/proxy/policy"
	"github.com/lectern-dev/lectern/proxy/resource"
)

func (b *builder) endpoint(o *ProxyEndpoint) {
	before := len(b.faults)
	b.begin("ProxyEndpoint", o.Metadata, o.At)
	b.checkIdentifier("spec.projectId", o.Spec.ProjectID)
	b.checkIdentifier("spec.environment", o.Spec.Environment)
	b.checkGrant(o.Spec.ProjectID)
	e := &policy.Endpoint{
		Name: o.Metadata.Name, Project: o.Spec.ProjectID, Environment: o.Spec.Environment,
		Origins:      b.rules("spec.origins", o.Spec.Origins),
		Destinations: b.destinations(o.Spec.Destinations),
		AllowHTTP:    o.Spec.AllowHTTP,
		KeepSecrets:  o.Spec.Scrub.Disabled, PassUnreadable: o.Spec.Scrub.PassUnreadable,
		Former: o.Former,
	}
	if o.Metadata.Namespace != "" {
		e.Name = o.Metadata.Namespace + "/" + o.Metadata.Name
	}
	switch o.Spec.Access {
	case "", resource.AccessByOrigin:
		if len(o.Spec.Origins) == 0 {
			b.fault(Invalid, "spec.origins", "at least one is required with access Origin")
		}
	case resource.AccessByKey:
		e.Access = policy.ByKey
	default:
		b.fault(Invalid, "spec.access", "is %q; allowed: Origin, Key", o.Spec.Access)
	}
	if len(o.Spec.Destinations) == 0 {
		b.fault(Invalid, "spec.destinations", "at least one is required")
	}
	b.checkCount("spec.methods", len(o.Spec.Methods), MaxMethods)
	for i, m := range o.Spec.Methods {
		if !httpguts.ValidHeaderFieldName(m) || m == "CONNECT" { // a method is a token, as a header's name is
			b.fault(Invalid, fmt.Sprintf("spec.methods[%d]", i), "is %q; allowed: a method other than CONNECT, such as GET", m)
		}
		e.Methods = append(e.Methods, m)
	}
	b.checkCount("spec.ports", len(o.Spec.Ports), MaxPorts)
	for i, p := range o.Spec.Ports {
		if p < 1 || p > 65535 {
			b.fault(Invalid, fmt.Sprintf("spec.ports[%d]", i), "is %d; allowed: 1 to 65535", p)
			continue
		}
		e.Ports = append(e.Ports, uint16(p))
	}
	b.checkCount("spec.credentials", len(o.Spec.Credentials), MaxRules)
	if len(o.Spec.CABundle) > MaxCABundle {
		b.fault(Invalid, "spec.caBundle", "has %d bytes; allowed: up to %d", len(o.Spec.CABundle), MaxCABundle)
	} else if o.Spec.CABundle != "" {
		e.Roots = x509.NewCertPool()
		if !e.Roots.AppendCertsFromPEM([]byte(o.Spec.CABundle)) {
			b.fault(Invalid, "spec.caBundle", "holds no certificate in PEM")
		}
		sum := sha256.Sum256([]byte(o.Spec.CABundle))
		e.RootsID = hex.EncodeToString(sum[:])
	}
	b.limits(e, o.Spec.Limits)
	b.timeouts(e, o.Spec.Timeouts)
	inForce := len(b.faults) == before
	b.uses(e, o)
	if inForce {
		b.endpoints = append(b.endpoints, e)
	}
}

// uses adds to e the credentials that the endpoint may use. For every other id in the list, it adds a fault that does
// not exclude the endpoint.
func (b *builder) uses(e *policy.Endpoint, o *ProxyEndpoint) {
	anyHost := len(o.Spec.Credentials) > 0 && slices.ContainsFunc(e.Destinations, func(r policy.Rule) bool {
		return r.AllowsAnyHost() && !r.CrossesHost() // destinations added the fault of a rule that crosses the host
	})
	for i, id := range o.Spec.Credentials {
		field := fmt.Sprintf("spec.credentials[%d]", i)
		c := b.resolve(o.Metadata.Namespace, credentialKey{e.Project, e.Environment, id})
		if c != nil {
			e.Former = append(e.Former, c.former...)
		}
		switch {
		case c == nil:
			b.fault(CredentialMissing, field, "there is no Credential with the id %q in project %q, environment %q that this namespace may use",
				id, e.Project, e.Environment)
		case c.inForce == nil:
			b.fault(CredentialFaulty, field, "the Credential with the id %q is not in force", id)
		case anyHost && len(c.inForce.Destinations) == 0:
			b.fault(Invalid, field, "a destination of the endpoint matches any host, and the Credential with the id %q names no destinations: "+
				"its value could be sent anywhere; name destinations in the Credential (any host is {pattern: 'https://[^/]+/.*'})", id)
		default:
			if c.inForce.Value.Len() < policy.MinScrubbed && !e.KeepSecrets {
				b.warn(field, "the value of %s has fewer than %d bytes, and so cannot be used where answers are scrubbed", id, policy.MinScrubbed)
			}
			e.Credentials = append(e.Credentials, c.inForce)
		}
	}
}

// resolve returns the Credential that an id means for the endpoints of a namespace. The Credential of the namespace
// itself comes first, even if it is not in force. Next comes the first Credential of another namespace that grants its
// use. The result is nil if there is no such Credential.
func (b *builder) resolve(namespace string, key credentialKey) *claim {
	var granted *claim
	for _, c := range b.claims[key] {
		if c.namespace == namespace {
			return c
		}
		if granted == nil && Granted(namespace, c.namespace, c.allowed) {
			granted = c
		}
	}
	return granted
}

func (b *builder) limits(e *policy.Endpoint, l resource.Limits) {
	for _, n := range []struct {
		field string
		value int64
	}{
		{"requestsPerSecond", int64(l.RequestsPerSecond)}, {"burst", int64(l.Burst)}, {"concurrent", int64(l.Concurrent)},
		{"requestBytes", l.RequestBytes}, {"responseBytes", l.ResponseBytes},
	} {
		const largest = 1 << 50
		if n.value < 0 || n.value > largest || !strings.HasSuffix(n.field, "Bytes") && n.value > 1_000_000 {
			b.fault(Invalid, "spec.limits."+n.field, "is out of range: %d", n.value)
		}
	}
	e.Limits = policy.Limits{
		PerSecond: int(l.RequestsPerSecond), Burst: int(l.Burst), Concurrent: int(l.Concurrent),
		RequestBytes: l.RequestBytes, ResponseBytes: l.ResponseBytes,
	}
	if e.Limits.Burst == 0 {
		e.Limits.Burst = 2 * e.Limits.PerSecond
	}
	if e.Limits.Concurrent == 0 {
		e.Limits.Concurrent = policy.DefaultConcurrent
	}
}

func (b *builder) timeouts(e *policy.Endpoint, t resource.Timeouts) {
	for _, d := range []struct {
		field   string
		given   resource.Duration
		to      *time.Duration
		unset   time.Duration
		longest time.Duration
	}{
		{"connect", t.Connect, &e.Timeouts.Connect, policy.DefaultConnectTimeout, time.Minute},
		{"headers", t.Headers, &e.Timeouts.Headers, policy.DefaultHeadersTimeout, time.Hour},
		{"idle", t.Idle, &e.Timeouts.Idle, policy.DefaultIdleTimeout, 24 * time.Hour},
		{"total", t.Total, &e.Timeouts.Total, 0, 7 * 24 * time.Hour},
	} {
		given, err := d.given.Parse()
		switch {
		case err != nil:
			b.fault(Invalid, "spec.timeouts."+d.field, "%v", err)
		case given < 0 || given > d.longest:
			b.fault(Invalid, "spec.timeouts."+d.field, "is %s; allowed: up to %s", given, d.longest)
		}
		*d.to = given
		if given == 0 {
			*d.to = d.unset
		}
	}
}
