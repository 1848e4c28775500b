package operator

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lectern-dev/lectern/k8s/api/v1alpha1"
	"github.com/lectern-dev/lectern/k8s/testing/kubetest"
	"github.com/lectern-dev/lectern/proxy/resource"
	"github.com/lectern-dev/lectern/shared/renewal"
	"github.com/lectern-dev/lectern/shared/testing/eventually"
	"github.com/lectern-dev/lectern/shared/testing/needs"
	"github.com/lectern-dev/lectern/shared/testing/servicetest"
)

// gate passes requests on to an API server. It holds up one write of the Secret a-oauth2, until the client has gone.
type gate struct {
	*httptest.Server
	reached chan struct{} // closed at that write

	held atomic.Pointer[string] // "claim": the write of a claim; "write": that of a token; "written": after it
}

func newGate(t *testing.T, c *kubetest.Cluster) *gate {
	t.Helper()
	transport, err := rest.TransportFor(c.Config())
	if err != nil {
		t.Fatal(err)
	}
	server, err := url.Parse(c.Config().Host)
	if err != nil {
		t.Fatal(err)
	}
	g := &gate{reached: make(chan struct{})}
	next := &httputil.ReverseProxy{Transport: transport, Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(server) }}
	g.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		held := g.held.Load()
		if held == nil || r.Method != http.MethodPatch || !strings.HasSuffix(r.URL.Path, "/secrets/a-oauth2") {
			next.ServeHTTP(w, r)
			return
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		if isToken := bytes.Contains(body, []byte("access-token")); isToken == (*held == "claim") {
			next.ServeHTTP(w, r)
			return
		}
		if *held == "written" {
			next.ServeHTTP(httptest.NewRecorder(), r)
		}
		close(g.reached)
		<-r.Context().Done()
	}))
	t.Cleanup(g.Close)
	return g
}

// TestLongOperatorKilledWhileFetching kills the operator at each step of a renewal. The next operator sends the newest
// refresh token that was written, and no older one. After another token was given, it sends only that.
func TestLongOperatorKilledWhileFetching(t *testing.T) {
	needs.Long(t)
	t.Parallel()
	binary := servicetest.Build(t, "../cmd/operator")
	for name, tt := range map[string]struct {
		moment string   // see gate; "request" and "answer": the endpoint has not yet, or has, replaced the refresh token
		grace  bool     // the endpoint accepts the token that it replaced
		given  bool     // another token is given before the next operator starts
		sent   []string // after the first token
		token  string   // of the next operator; "": the endpoint refuses, until another token is given
	}{
		"before the claim":              {"claim", false, false, []string{"refresh-1"}, "token-2"},
		"before the request":            {"request", false, false, []string{"refresh-1"}, "token-2"},
		"before the answer":             {"answer", false, false, []string{"refresh-1", "refresh-1"}, ""},
		"before the answer, with grace": {"answer", true, false, []string{"refresh-1", "refresh-1"}, "token-3"},
		"before the answer, given":      {"answer", true, true, []string{"refresh-1", "given"}, "token-3"},
		"before the write":              {"write", false, false, []string{"refresh-1", "refresh-1"}, ""},
		"before the write, with grace":  {"write", true, false, []string{"refresh-1", "refresh-1"}, "token-3"},
		"before the write, given":       {"write", true, true, []string{"refresh-1", "given"}, "token-3"},
		"after the write":               {"written", false, false, []string{"refresh-1"}, "token-2"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := kubetest.Start(t)
			e, g := newTokenEndpoint(t), newGate(t, c)
			declare(t, c)
			environ := e.environ()
			valuesFor(t, c, environ)
			file := kubeconfig(t, &rest.Config{Host: g.URL})
			cred, secret := e.credential("a", resource.RefreshToken), clientSecret()
			c.Create(t, secret, cred)
			await := func(want string) {
				t.Helper()
				eventually.Succeeds(t, "the Secret has the token "+want, func() error {
					var s corev1.Secret
					if err := c.Client.Get(t.Context(), client.ObjectKey{Namespace: c.Namespace, Name: "a-oauth2"}, &s); err != nil {
						return err
					}
					if got := string(s.Data["access-token"]); got != want {
						return fmt.Errorf("the Secret has %q", got)
					}
					return nil
				})
			}
			give := func() {
				e.set(func(e *endpoint) { e.refresh = "given" })
				kubetest.Change(t, c, secret, func(s *corev1.Secret) { s.Data["refresh"] = []byte("given") })
			}
			p := launch(t, binary, file, c, environ)
			await("token-1")

			release := make(chan struct{})
			e.set(func(e *endpoint) {
				if e.answer = nil; tt.moment != "request" && tt.moment != "answer" {
					return
				}
				e.answer = func(http.ResponseWriter) bool {
					if e.answer = nil; tt.moment == "answer" {
						e.sent, e.forms, e.refresh = append(e.sent, "refresh-1"), append(e.forms, nil), "refresh-2"
					}
					close(g.reached)
					e.mu.Unlock() // for other requests
					<-release
					e.mu.Lock()
					return true
				}
			})
			g.held.Store(&tt.moment)
			// Other settings with the same refresh token make the renewal due.
			kubetest.Change(t, c, cred, func(c *v1alpha1.Credential) { c.Spec.ValueFrom.OAuth2.CABundle += "\n" })
			eventually.Receive(t, "the moment", g.reached)
			p.kill()
			close(release)
			g.held.Store(nil)
			own := newSecret(in(c.Namespace, "a-oauth2"), nil)
			kubetest.Change(t, c, own, func(s *corev1.Secret) { // as after the time of a claim
				var state renewal.State
				if err := json.Unmarshal(s.Data["state"], &state); err != nil {
					t.Fatal(err)
				}
				if !state.ClaimedAt.IsZero() {
					state.ClaimedAt = state.ClaimedAt.Add(-time.Minute)
				}
				s.Data["state"], _ = json.Marshal(state)
			})
			if tt.grace {
				e.set(func(e *endpoint) { e.former = "refresh-1" })
			}
			if tt.given {
				give()
			}

			want := append([]string{"first"}, tt.sent...)
			launch(t, binary, file, c, environ)
			if tt.token == "" {
				if said := c.AwaitReady(t, cred, v1alpha1.ReasonFetchFailing).Message; !strings.Contains(said, "put another into the key") {
					t.Errorf("says %s", said)
				}
				give()
				tt.token, want = "token-3", append(want, "given")
			}
			await(tt.token)
			e.set(func(e *endpoint) {
				if !slices.Equal(e.sent, want) {
					t.Errorf("sent %q, want %q", e.sent, want)
				}
			})
		})
	}
}
