package explain_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/lectern-dev/lectern/proxy/explain"
	"github.com/lectern-dev/lectern/proxy/policy"
	"github.com/lectern-dev/lectern/proxy/secret"
)

func rule(t *testing.T, r policy.Rule, err error) policy.Rule {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestAsk(t *testing.T) {
	domain := func(name string) []policy.Rule {
		r, err := policy.Domain(name)
		return []policy.Rule{rule(t, r, err)}
	}
	credentialA := &policy.Credential{ID: "cred_a", Project: "p", Environment: "prod", Value: secret.New([]byte("canary-value-a"))}
	credentialB := &policy.Credential{ID: "cred_b", Project: "p", Environment: "prod", Value: secret.New([]byte("canary-value-b")), Places: policy.InURL}
	s, err := policy.NewSnapshot([]*policy.Endpoint{
		{Name: "web", Project: "p", Environment: "prod", Origins: domain("example.com"), Destinations: domain("stripe.com"), Credentials: []*policy.Credential{credentialA}},
		{Name: "server", Project: "p", Environment: "prod", Access: policy.ByKey, Destinations: domain("stripe.com"), Credentials: []*policy.Credential{credentialA, credentialB}},
	}, []*policy.Credential{credentialA, credentialB})
	if err != nil {
		t.Fatal(err)
	}
	header := http.Header{"Authorization": {"Bearer {{ cred_a }}"}}
	for _, tt := range []struct {
		name string
		in   explain.Question
		want []string
	}{
		{"allowed", explain.Question{Origin: "https://app.example.com", Target: "https://API.stripe.com/v1", Header: header}, []string{"allowed by endpoint web", "matched: https://api.stripe.com/v1", "credentials: cred_a"}},
		{"another origin", explain.Question{Origin: "https://evil.tld", Target: "https://api.stripe.com/"}, []string{"refused: origin_not_allowed", "web: the origin is not allowed"}},
		{"another destination", explain.Question{Origin: "https://example.com", Target: "https://evil.tld/"}, []string{"refused: destination_not_allowed", "web: the destination is not allowed"}},
		{"not listed", explain.Question{Origin: "https://example.com", Target: "https://stripe.com/{{cred_b}}"}, []string{"refused: credential_not_allowed", "because: web: a credential is not allowed: cred_b in the url: not among the endpoint's credentials"}},
		{"without a key", explain.Question{Target: "https://stripe.com/{{cred_b}}"}, []string{"refused: unauthorized", "server: an API key"}},
		{"with a key", explain.Question{Keyed: true, Target: "https://stripe.com/{{cred_b}}"}, []string{"allowed by endpoint server"}},
		{"in another place", explain.Question{Keyed: true, Method: "POST", Target: "https://stripe.com/", Header: http.Header{"X-Use-Body-Templating": {"true"}, "Content-Type": {"text/plain"}}, Body: []byte("{{cred_b}}")}, []string{"not in the body"}},
		{"no URL", explain.Question{Origin: "https://example.com", Target: "stripe.com"}, []string{"refused: invalid_target"}},
		{"preflight", explain.Question{Origin: "https://example.com", Method: "OPTIONS", Target: "https://stripe.com/", Header: http.Header{"Access-Control-Request-Method": {"GET"}}}, []string{"granted"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.in.Project, tt.in.Environment = "p", "prod"
			for range 2 { // Ask changes no state
				report, err := explain.Ask(s, tt.in)
				if err != nil {
					t.Fatal(err)
				}
				for _, want := range tt.want {
					if !strings.Contains(report.String(), want) {
						t.Errorf("%s\nwant: %s", report, want)
					}
				}
				if strings.Contains(report.String(), "canary") {
					t.Errorf("shows a value: %s", report)
				}
			}
		})
	}
}
