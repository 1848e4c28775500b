package manifest_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lectern-dev/lectern/proxy/manifest"
	"github.com/lectern-dev/lectern/proxy/policy"
	"github.com/lectern-dev/lectern/proxy/resource"
)

// objects returns objects of two namespaces. Namespace a has the project, its credential and an endpoint. Namespace b
// has an endpoint that uses a's credential.
func objects() manifest.Objects {
	in := func(namespace, name string) manifest.Metadata {
		return manifest.Metadata{Namespace: namespace, Name: name}
	}
	endpoint := resource.ProxyEndpointSpec{
		ProjectID: "pr_1", Environment: "prod", Access: "Key",
		Destinations: []resource.Rule{{Domain: "example.com"}}, Credentials: []string{"cred_x"},
	}
	return manifest.Objects{
		Projects: []manifest.Project{{Metadata: in("a", "one"), Spec: resource.ProjectSpec{ProjectID: "pr_1", AllowedNamespaces: []string{"b"}}}},
		Secrets:  []manifest.Secret{{Metadata: in("a", "s"), Data: map[string][]byte{"token": []byte(canary)}}},
		Credentials: []manifest.Credential{{Metadata: in("a", "x"), Spec: resource.CredentialSpec{
			ProjectID: "pr_1", Environment: "prod", ID: "cred_x", AllowedNamespaces: []string{"b"},
			ValueFrom: resource.ValueSource{SecretKeyRef: resource.SecretKeyRef{Name: "s", Key: "token"}},
		}}},
		Endpoints: []manifest.ProxyEndpoint{
			{Metadata: in("a", "web"), Spec: endpoint}, {Metadata: in("b", "web"), Spec: endpoint},
		},
	}
}

// TestBuildEach checks that a fault of one object excludes that object and no other.
func TestBuildEach(t *testing.T) {
	type fault struct {
		Of    manifest.ObjectKey
		Cause manifest.Cause
	}
	var (
		credential = manifest.ObjectKey{Kind: "Credential", Namespace: "a", Name: "x"}
		endpointA  = manifest.ObjectKey{Kind: "ProxyEndpoint", Namespace: "a", Name: "web"}
		endpointB  = manifest.ObjectKey{Kind: "ProxyEndpoint", Namespace: "b", Name: "web"}
	)
	for _, tt := range []struct {
		name string
		in   func(o *manifest.Objects)
		want []fault
		uses map[string][]string // the active endpoints, and the credentials that each may use
	}{
		{"all is well", func(*manifest.Objects) {}, nil, map[string][]string{"a/web": {"cred_x"}, "b/web": {"cred_x"}}},
		{"an endpoint's pattern", func(o *manifest.Objects) { o.Endpoints[0].Spec.Origins = []resource.Rule{{Pattern: "("}} },
			[]fault{{endpointA, manifest.Invalid}}, map[string][]string{"b/web": {"cred_x"}}},
		{"no Secret", func(o *manifest.Objects) { o.Secrets = nil },
			[]fault{{credential, manifest.SecretMissing}, {endpointA, manifest.CredentialFaulty}, {endpointB, manifest.CredentialFaulty}},
			map[string][]string{"a/web": nil, "b/web": nil}},
		{"the Secret of another namespace", func(o *manifest.Objects) { o.Secrets[0].Metadata.Namespace = "b" },
			[]fault{{credential, manifest.SecretMissing}, {endpointA, manifest.CredentialFaulty}, {endpointB, manifest.CredentialFaulty}},
			map[string][]string{"a/web": nil, "b/web": nil}},
		{"no key", func(o *manifest.Objects) { o.Secrets[0].Data = nil },
			[]fault{{credential, manifest.SecretKeyMissing}, {endpointA, manifest.CredentialFaulty}, {endpointB, manifest.CredentialFaulty}},
			map[string][]string{"a/web": nil, "b/web": nil}},
		{"empty", func(o *manifest.Objects) { o.Secrets[0].Data["token"] = nil },
			[]fault{{credential, manifest.ValueInvalid}, {endpointA, manifest.CredentialFaulty}, {endpointB, manifest.CredentialFaulty}},
			map[string][]string{"a/web": nil, "b/web": nil}},
		{"too long", func(o *manifest.Objects) { o.Secrets[0].Data["token"] = make([]byte, policy.MaxValue+1) },
			[]fault{{credential, manifest.ValueInvalid}, {endpointA, manifest.CredentialFaulty}, {endpointB, manifest.CredentialFaulty}},
			map[string][]string{"a/web": nil, "b/web": nil}},
		{"no credential", func(o *manifest.Objects) { o.Credentials = nil },
			[]fault{{endpointA, manifest.CredentialMissing}, {endpointB, manifest.CredentialMissing}}, map[string][]string{"a/web": nil, "b/web": nil}},
		{"another environment", func(o *manifest.Objects) { o.Endpoints[0].Spec.Environment = "test" },
			[]fault{{endpointA, manifest.CredentialMissing}}, map[string][]string{"a/web": nil, "b/web": {"cred_x"}}},
		{"the credential is not granted", func(o *manifest.Objects) { o.Credentials[0].Spec.AllowedNamespaces = []string{"c"} },
			[]fault{{endpointB, manifest.CredentialMissing}}, map[string][]string{"a/web": {"cred_x"}, "b/web": nil}},
		{"the credential is granted to all", func(o *manifest.Objects) { o.Credentials[0].Spec.AllowedNamespaces = []string{"*"} },
			nil, map[string][]string{"a/web": {"cred_x"}, "b/web": {"cred_x"}}},
		{"the project is not granted", func(o *manifest.Objects) { o.Projects[0].Spec.AllowedNamespaces = nil },
			[]fault{{endpointB, manifest.NotGranted}}, map[string][]string{"a/web": {"cred_x"}}},
		{"the project is declared by nobody", func(o *manifest.Objects) { o.Projects = nil },
			nil, map[string][]string{"a/web": {"cred_x"}, "b/web": {"cred_x"}}},
		{"the project is declared by nobody, and has to be", func(o *manifest.Objects) { o.Projects, o.RequireProject = nil, true },
			[]fault{{credential, manifest.NotDeclared}, {endpointA, manifest.NotDeclared}, {endpointA, manifest.CredentialMissing},
				{endpointB, manifest.NotDeclared}, {endpointB, manifest.CredentialMissing}}, map[string][]string{}},
		{"a destination of any host", func(o *manifest.Objects) {
			o.Endpoints[0].Spec.Destinations = []resource.Rule{{Domain: "example.com"}, {Pattern: "https://[^/]+/.*"}}
		}, []fault{{endpointA, manifest.Invalid}}, map[string][]string{"a/web": nil, "b/web": {"cred_x"}}},
		{"a destination of any host, and the credential's own", func(o *manifest.Objects) {
			o.Endpoints[0].Spec.Destinations = []resource.Rule{{Pattern: "https://[^/]+/.*"}}
			o.Credentials[0].Spec.Destinations = []resource.Rule{{Pattern: "https://[^/]+/.*"}}
		}, nil, map[string][]string{"a/web": {"cred_x"}, "b/web": {"cred_x"}}},
		{"a destination whose host part matches a slash", func(o *manifest.Objects) {
			o.Endpoints[0].Spec.Destinations = []resource.Rule{{Pattern: `https://.*\.example\.com/.*`}}
		}, []fault{{endpointA, manifest.Invalid}}, map[string][]string{"b/web": {"cred_x"}}},
		{"an older Credential of the id", func(o *manifest.Objects) {
			older := o.Credentials[0]
			older.Metadata.Name = "older"
			o.Credentials = append([]manifest.Credential{older}, o.Credentials...)
		}, []fault{{credential, manifest.Duplicate}}, map[string][]string{"a/web": {"cred_x"}, "b/web": {"cred_x"}}},
		{"a credential outside the project claims none of its ids", func(o *manifest.Objects) {
			older := o.Credentials[0]
			older.Metadata.Namespace = "c"
			o.Credentials = append([]manifest.Credential{older}, o.Credentials...)
		}, []fault{
			{manifest.ObjectKey{Kind: "Credential", Namespace: "c", Name: "x"}, manifest.NotGranted},
			{manifest.ObjectKey{Kind: "Credential", Namespace: "c", Name: "x"}, manifest.SecretMissing},
		}, map[string][]string{"a/web": {"cred_x"}, "b/web": {"cred_x"}}},
		{"an older Project of the id", func(o *manifest.Objects) {
			o.Projects = append(o.Projects, manifest.Project{Metadata: manifest.Metadata{Namespace: "b", Name: "mine"}, Spec: resource.ProjectSpec{ProjectID: "pr_1"}})
		}, []fault{{manifest.ObjectKey{Kind: "Project", Namespace: "b", Name: "mine"}, manifest.Duplicate}}, map[string][]string{"a/web": {"cred_x"}, "b/web": {"cred_x"}}},
		{"too many", func(o *manifest.Objects) {
			o.Endpoints[0].Spec.Destinations = make([]resource.Rule, manifest.MaxRules+1)
			for i := range o.Endpoints[0].Spec.Destinations {
				o.Endpoints[0].Spec.Destinations[i].Domain = "example.com"
			}
		}, []fault{{endpointA, manifest.Invalid}}, map[string][]string{"b/web": {"cred_x"}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := objects()
			tt.in(&o)
			s, faults, warnings := manifest.BuildEach(o)
			var got []fault
			for _, f := range faults {
				got = append(got, fault{f.Of, f.Cause})
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("faults (-want +got):\n%s", diff)
			}
			uses := map[string][]string{}
			for _, e := range s.Endpoints() {
				uses[e.Name] = nil
				for _, c := range e.Credentials {
					uses[e.Name] = append(uses[e.Name], c.ID)
				}
			}
			if diff := cmp.Diff(tt.uses, uses); diff != "" {
				t.Errorf("in force (-want +got):\n%s", diff)
			}
			if len(warnings) > 0 {
				t.Errorf("warnings: %v", warnings)
			}
			if _, _, err := manifest.Build(o); (err == nil) != (len(tt.want) == 0) {
				t.Errorf("Build: %v", err)
			}
		})
	}
}

// TestCredentialOfTheOwnNamespace checks that an endpoint uses the credential of its own namespace, even if another
// namespace grants an older one.
func TestCredentialOfTheOwnNamespace(t *testing.T) {
	const own, foreign = "value-of-b-itself", "value-of-a-stranger"
	credentialIn := func(namespace string, allowed ...string) manifest.Credential {
		c := objects().Credentials[0]
		c.Metadata.Namespace, c.Spec.AllowedNamespaces = namespace, allowed
		return c
	}
	secretIn := func(namespace, value string) manifest.Secret {
		s := objects().Secrets[0]
		s.Metadata.Namespace, s.Data = namespace, map[string][]byte{"token": []byte(value)}
		return s
	}
	for _, tt := range []struct {
		name   string
		change func(*manifest.Objects)
		want   string // the value that b's endpoint sends; "" for none
	}{
		{"both", func(*manifest.Objects) {}, own},
		{"the own one is not in force", func(o *manifest.Objects) { o.Secrets = o.Secrets[:1] }, ""},
		{"none of its own", func(o *manifest.Objects) { o.Credentials = o.Credentials[:1] }, foreign},
		{"neither its own nor granted", func(o *manifest.Objects) {
			o.Credentials = o.Credentials[:1]
			o.Credentials[0].Spec.AllowedNamespaces = nil
		}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := objects()
			o.Projects[0].Spec.AllowedNamespaces = []string{"b", "stranger"}
			o.Endpoints = o.Endpoints[1:]
			o.Secrets = []manifest.Secret{secretIn("stranger", foreign), secretIn("b", own)}
			o.Credentials = []manifest.Credential{credentialIn("stranger", "*"), credentialIn("b")}
			tt.change(&o)
			s, _, _ := manifest.BuildEach(o)
			got := ""
			for _, c := range s.Endpoints()[0].Credentials {
				got += string(c.Value.Reveal())
			}
			if got != tt.want {
				t.Errorf("sends %q, want %q", got, tt.want)
			}
		})
	}
}

// TestCredentialsOfOthersAreNotTold checks that the faults of a credential that is not granted, and of one that does not
// exist, have the same text.
func TestCredentialsOfOthersAreNotTold(t *testing.T) {
	said := func(change func(*manifest.Objects)) (told []string) {
		o := objects()
		o.Endpoints = o.Endpoints[1:]
		change(&o)
		_, faults, _ := manifest.BuildEach(o)
		for _, f := range faults {
			if f.Of.Kind == "ProxyEndpoint" {
				told = append(told, fmt.Sprint(f.Cause, f.Reason))
			}
		}
		return told
	}
	missing := said(func(o *manifest.Objects) { o.Credentials = nil })
	if diff := cmp.Diff(missing, said(func(o *manifest.Objects) { o.Credentials[0].Spec.AllowedNamespaces = nil })); diff != "" || len(missing) != 1 {
		t.Errorf("not there and not granted differ (-not there +not granted):\n%s", diff)
	}
	broken := said(func(o *manifest.Objects) { o.Credentials[0].Spec.AllowedNamespaces, o.Secrets = nil, nil })
	if diff := cmp.Diff(missing, broken); diff != "" {
		t.Errorf("not there and faulty differ (-not there +faulty):\n%s", diff)
	}
}
