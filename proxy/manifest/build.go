package manifest

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/http/httpguts"

	"github.com/lectern-dev/lectern/proxy/policy"
	"github.com/lectern-dev/lectern/proxy/resource"
	"github.com/lectern-dev/lectern/proxy/secret"
)

// Build returns a snapshot of all objects. If any object has a fault, it returns no snapshot, and an error that joins a
// [*Fault] for each mistake. Warnings are faults that do not prevent the snapshot. The snapshot shares the bytes of the
// Secrets' values with o.
func Build(o Objects) (s *policy.Snapshot, warnings []*Fault, err error) {
	s, faults, warnings := BuildEach(o)
	var errs []error
	for _, f := range faults {
		if f.Cause != CredentialFaulty { // the Credential has a fault of its own
			errs = append(errs, f)
		}
	}
	if len(errs) > 0 {
		return nil, warnings, errors.Join(errs...)
	}
	return s, warnings, nil
}

// BuildEach returns a snapshot of the valid endpoints and Credentials. It returns the faults in the order of the
// objects (Projects, Secrets, Credentials, endpoints), and warnings, which exclude nothing.
//
//   - Of several objects that claim the same name or id, the first object wins. So the caller passes older objects
//     first.
//   - An endpoint stays in force without the credentials that are missing, faulty or not granted to it.
//   - If a Project declares an object's project, the object must be in the Project's namespace or in a namespace that
//     the Project allows. With [Objects.RequireProject], a Project must declare the project.
//   - A credential's id means the Credential in the endpoint's own namespace. If that namespace has no such Credential,
//     the id means the first Credential of another namespace that grants its use.
//
// The snapshot shares the bytes of the Secrets' values with o.
func BuildEach(o Objects) (s *policy.Snapshot, faults, warnings []*Fault) {
	b := newBuilder(o)
	for i := range o.Secrets {
		if b.begin("Secret", o.Secrets[i].Metadata, o.Secrets[i].At) {
			b.secrets[b.of] = &o.Secrets[i]
		}
	}
	for i := range o.Credentials {
		b.credential(&o.Credentials[i])
	}
	for i := range o.Endpoints {
		b.endpoint(&o.Endpoints[i])
	}
	s, err := policy.NewSnapshot(b.endpoints, b.credentials)
	if err != nil {
		panic(err) // cannot happen: the builder checked that names and ids are unique
	}
	return s, b.faults, b.warnings
}

// Uses returns the Credentials that each endpoint may use, as [BuildEach] decides, whether or not their values and rules
// are valid.
func Uses(o Objects) map[ObjectKey][]ObjectKey {
	b := newBuilder(o)
	for i := range o.Credentials {
		c := &o.Credentials[i]
		before := len(b.faults)
		if b.begin("Credential", c.Metadata, nil) {
			if b.checkGrant(c.Spec.ProjectID); len(b.faults) == before {
				b.claim(&policy.Credential{ID: c.Spec.ID, Project: c.Spec.ProjectID, Environment: c.Spec.Environment}, c, false)
			}
		}
	}
	uses := map[ObjectKey][]ObjectKey{}
	for i := range o.Endpoints {
		e := &o.Endpoints[i]
		before := len(b.faults)
		b.begin("ProxyEndpoint", e.Metadata, nil)
		if b.checkGrant(e.Spec.ProjectID); len(b.faults) > before {
			continue
		}
		for _, id := range e.Spec.Credentials {
			if c := b.resolve(e.Metadata.Namespace, credentialKey{e.Spec.ProjectID, e.Spec.Environment, id}); c != nil {
				uses[b.of] = append(uses[b.of], ObjectKey{"Credential", c.namespace, c.name})
			}
		}
	}
	return uses
}

type credentialKey struct{ project, environment, id string }

// claim is the first Credential with an id in a namespace, project and environment. A faulty Credential keeps its
// claim, so no later Credential gets the id.
type claim struct {
	namespace, name string
	allowed         []string           // the other namespaces that may use the Credential
	inForce         *policy.Credential // nil: the Credential has a fault
	former          []policy.Former
}

// builder collects the parts of a snapshot, object by object.
type builder struct {
	at func(field string) Position // of the current object
	of ObjectKey                   // the current object

	requireProject bool

	projects map[string]*Project // by the project's id
	secrets  map[ObjectKey]*Secret
	claims   map[credentialKey][]*claim // one for each namespace
	names    map[ObjectKey]bool

	endpoints   []*policy.Endpoint
	credentials []*policy.Credential
	faults      []*Fault
	warnings    []*Fault
}

// newBuilder returns a builder with the Projects of o.
func newBuilder(o Objects) *builder {
	b := &builder{
		projects: map[string]*Project{}, secrets: map[ObjectKey]*Secret{},
		claims: map[credentialKey][]*claim{}, names: map[ObjectKey]bool{}, requireProject: o.RequireProject,
	}
	for i := range o.Projects {
		b.project(&o.Projects[i])
	}
	return b
}

// begin makes an object the current object, to which the next faults belong. It adds a fault for a name that is not
// allowed. If an earlier object of the kind has the same namespace and name, it adds a fault and returns false.
func (b *builder) begin(kind string, m Metadata, at func(string) Position) bool {
	b.of, b.at = ObjectKey{kind, m.Namespace, m.Name}, at
	if m.Name == "" || len(m.Name) > 253 || strings.Contains(m.Name, "/") {
		b.fault(Invalid, "metadata.name", "is to have 1 to 253 characters, and no slash")
	}
	if b.names[b.of] {
		b.fault(Duplicate, "metadata.name", "there are two %ss of this name", kind)
		return false
	}
	b.names[b.of] = true
	return true
}

func (b *builder) newFault(cause Cause, field, format string, args ...any) *Fault {
	f := &Fault{Object: b.of.Kind + "/" + b.of.Name, Of: b.of, Cause: cause, Reason: field + ": " + fmt.Sprintf(format, args...)}
	if b.at != nil {
		f.Position = b.at(field)
	}
	return f
}

func (b *builder) fault(cause Cause, field, format string, args ...any) {
	b.faults = append(b.faults, b.newFault(cause, field, format, args...))
}

func (b *builder) warn(field, format string, args ...any) {
	b.warnings = append(b.warnings, b.newFault(Invalid, field, format, args...))
}

func (b *builder) checkIdentifier(field, value string) {
	if value == "" || len(value) > 256 || !utf8.ValidString(value) || strings.ContainsRune(value, 0) {
		b.fault(Invalid, field, "is to have 1 to 256 bytes of UTF-8")
	}
}

func (b *builder) checkCount(field string, count, limit int) {
	if count > limit {
		b.fault(Invalid, field, "has %d; allowed: up to %d", count, limit)
	}
}

func (b *builder) project(o *Project) {
	if !b.begin("Project", o.Metadata, o.At) {
		return
	}
	b.checkIdentifier("spec.projectId", o.Spec.ProjectID)
	if b.projects[o.Spec.ProjectID] != nil {
		b.fault(Duplicate, "spec.projectId", "is %q, as is that of another Project before it", o.Spec.ProjectID)
		return
	}
	b.projects[o.Spec.ProjectID] = o
}

// checkGrant adds a fault when the current object may not belong to the project that it names.
func (b *builder) checkGrant(project string) {
	switch p := b.projects[project]; {
	case p == nil && b.requireProject:
		b.fault(NotDeclared, "spec.projectId", "no Project declares project %q; one is required, and is made by the platform's administrators", project)
	case p != nil && !Granted(b.of.Namespace, p.Metadata.Namespace, p.Spec.AllowedNamespaces):
		b.fault(NotGranted, "spec.projectId", "project %q belongs to another namespace, whose Project does not list %q in allowedNamespaces",
			project, b.of.Namespace)
	}
}

// Granted reports whether an object in namespace may refer to an object in owner that allows the namespaces in allowed.
// The entry "*" allows all namespaces.
func Granted(namespace, owner string, allowed []string) bool {
	return namespace == owner || slices.Contains(allowed, namespace) || slices.Contains(allowed, "*")
}

func (b *builder) credential(o *Credential) {
	before := len(b.faults)
	named := b.begin("Credential", o.Metadata, o.At)
	b.checkIdentifier("spec.projectId", o.Spec.ProjectID)
	b.checkIdentifier("spec.environment", o.Spec.Environment)
	b.checkGrant(o.Spec.ProjectID)
	granted := len(b.faults) == before
	c := &policy.Credential{ID: o.Spec.ID, Project: o.Spec.ProjectID, Environment: o.Spec.Environment}
	if !policy.ValidID(c.ID) {
		b.fault(Invalid, "spec.id", "is %q; allowed: cred_ and 1 to 64 letters, digits, _ or -", c.ID)
	}
	c.Destinations = b.destinations(o.Spec.Destinations)
	for i, name := range o.Spec.Places {
		p, known := places[name]
		if !known {
			b.fault(Invalid, fmt.Sprintf("spec.places[%d]", i), "is %q; allowed: Header, URL, Body", name)
		}
		c.Places |= p
	}
	b.headers(c, o)
	b.bodyPaths(c, o)
	if c.Places == 0 {
		c.Places = namedPlaces(c)
	}
	c.Value = b.value(c, o)
	if named && granted { // a Credential that may not belong to the project cannot claim its ids
		b.claim(c, o, len(b.faults) == before)
	}
	if len(b.faults) > before {
		return
	}
	b.credentials = append(b.credentials, c)
}

var places = map[resource.Place]policy.Place{
	resource.InHeader: policy.InHeader, resource.InURL: policy.InURL, resource.InBody: policy.InBody,
}

// headers copies the names in spec.headers to c in canonical form. It adds faults, such as for a name that no header
// can have.
func (b *builder) headers(c *policy.Credential, o *Credential) {
	const field = "spec.headers"
	b.checkCount(field, len(o.Spec.Headers), MaxHeaders)
	for i, name := range o.Spec.Headers {
		if !httpguts.ValidHeaderFieldName(name) {
			b.fault(Invalid, fmt.Sprintf("%s[%d]", field, i), "is %q; allowed: the name of a header, such as Authorization", name)
		}
		c.Headers = append(c.Headers, http.CanonicalHeaderKey(name))
	}
	if len(c.Headers) > 0 && c.Places != 0 && c.Places&policy.InHeader == 0 {
		b.fault(Invalid, field, "has no meaning, because spec.places has no Header")
	}
}

// bodyPaths copies spec.bodyPaths to c. For too many paths, a path that is empty or too long, or paths that spec.places
// excludes, bodyPaths adds faults to b.
func (b *builder) bodyPaths(c *policy.Credential, o *Credential) {
	const field = "spec.bodyPaths"
	b.checkCount(field, len(o.Spec.BodyPaths), policy.MaxBodyPaths)
	for i, path := range o.Spec.BodyPaths {
		if path == "" || len(path) > policy.MaxBodyPath {
			b.fault(Invalid, fmt.Sprintf("%s[%d]", field, i), "is to have 1 to %d bytes: a JSON pointer such as /auth/token, or the name of a form's field or part", policy.MaxBodyPath)
		}
	}
	c.BodyPaths = o.Spec.BodyPaths
	if len(c.BodyPaths) > 0 && c.Places != 0 && c.Places&policy.InBody == 0 {
		b.fault(Invalid, field, "has no meaning, because spec.places has no Body")
	}
}

// namedPlaces returns the places that spec.headers and spec.bodyPaths imply. Without spec.places, the credential is
// allowed only in these places. The result 0 means that spec.headers and spec.bodyPaths are empty.
func namedPlaces(c *policy.Credential) (named policy.Place) {
	if len(c.Headers) > 0 {
		named |= policy.InHeader
	}
	if len(c.BodyPaths) > 0 {
		named |= policy.InBody
	}
	return named
}

// claim registers a Credential under its project, environment and id. It adds a Duplicate fault if an earlier
// Credential of the same namespace has the same project, environment and id. A Credential with faults keeps its claim,
// and is not in force.
func (b *builder) claim(c *policy.Credential, o *Credential, faultless bool) {
	key := credentialKey{c.Project, c.Environment, c.ID}
	for _, earlier := range b.claims[key] {
		if earlier.namespace == o.Metadata.Namespace {
			b.fault(Duplicate, "spec.id", "is %q, as is that of Credential/%s in the same project and environment", c.ID, earlier.name)
			return
		}
	}
	one := &claim{namespace: o.Metadata.Namespace, name: o.Metadata.Name, allowed: o.Spec.AllowedNamespaces, former: o.Former}
	if faultless {
		one.inForce = c
	}
	b.claims[key] = append(b.claims[key], one)
}

// value returns the value of c in its Secret, without line breaks at the end. If the Secret has no valid value, it adds
// a fault and returns an empty value.
func (b *builder) value(c *policy.Credential, o *Credential) secret.Value {
	const field = "spec.valueFrom.secretKeyRef"
	ref := o.Spec.ValueFrom.SecretKeyRef
	if o.Spec.ValueFrom.OAuth2 != nil {
		b.fault(Invalid, "spec.valueFrom.oauth2", "works in a Kubernetes cluster alone, whose operator fetches the token; allowed in a folder of manifests: secretKeyRef")
		return secret.Value{}
	}
	if ref.Name == "" || ref.Key == "" {
		b.fault(Invalid, field, "name and key are required")
		return secret.Value{}
	}
	s := b.secrets[ObjectKey{"Secret", o.Metadata.Namespace, ref.Name}]
	if s == nil {
		b.fault(SecretMissing, field, "there is no Secret %q", ref.Name)
		return secret.Value{}
	}
	whole, ok := s.Data[ref.Key]
	v := bytes.TrimRight(whole, "\r\n") // files and echo end in line breaks; no key or password does
	switch {
	case !ok:
		b.fault(SecretKeyMissing, field, "the Secret %q has no key %q", ref.Name, ref.Key)
	case len(v) == 0:
		b.fault(ValueInvalid, field, "the key %q of the Secret %q is empty", ref.Key, ref.Name)
	case len(v) > policy.MaxValue:
		b.fault(ValueInvalid, field, "the key %q of the Secret %q has %d bytes; allowed: up to %d", ref.Key, ref.Name, len(v), policy.MaxValue)
	case c.Places == policy.InHeader && !httpguts.ValidHeaderFieldValue(string(v)):
		b.fault(ValueInvalid, field, "the key %q of the Secret %q has a control character, such as a line break, which no header can hold, and the Credential allows headers alone", ref.Key, ref.Name)
	default:
		if len(v) < len(whole) {
			b.warn(field, "the key %q of the Secret %q ends in a line break, which is left out", ref.Key, ref.Name)
		}
		return secret.New(v)
	}
	return secret.Value{}
}

// destinations returns the valid rules of spec.destinations, and adds a fault for each other rule. If all are valid, it
// adds a fault for each pattern that may match other hosts.
func (b *builder) destinations(specs []resource.Rule) []policy.Rule {
	const field = "spec.destinations"
	rules := b.rules(field, specs)
	if len(rules) < len(specs) {
		return rules // rules added the faults of the others
	}
	for i, r := range rules {
		if r.CrossesHost() {
			b.fault(Invalid, fmt.Sprintf("%s[%d].pattern", field, i), "is %q, whose part before the path can match a slash, and so other hosts; "+
				`write the host without "." for any character, and the slash after it, such as https://[^/]+\.example\.com/.*`, specs[i].Pattern)
		}
	}
	return rules
}

func (b *builder) rules(field string, specs []resource.Rule) []policy.Rule {
	b.checkCount(field, len(specs), MaxRules)
	rules := make([]policy.Rule, 0, len(specs))
	for i, spec := range specs {
		at := fmt.Sprintf("%s[%d]", field, i)
		var (
			r   policy.Rule
			err error
		)
		switch {
		case (spec.Domain == "") == (spec.Pattern == ""):
			b.fault(Invalid, at, "exactly one of domain and pattern is to be set")
			continue
		case spec.Domain != "":
			at += ".domain"
			r, err = policy.Domain(spec.Domain)
		default:
			at += ".pattern"
			r, err = policy.Pattern(spec.Pattern)
		}
		if err != nil {
			b.fault(Invalid, at, "%v", err)
			continue
		}
		rules = append(rules, r)
	}
	return rules
}
