package operator

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/asn1"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lectern-dev/lectern/k8s/api/v1alpha1"
	"github.com/lectern-dev/lectern/k8s/testing/kubetest"
	"github.com/lectern-dev/lectern/proxy/resource"
	"github.com/lectern-dev/lectern/shared/testing/eventually"
)

// endpoint is a token endpoint. Each refresh token is valid once. The first one is "first", and the client's secret is
// the canary.
type endpoint struct {
	*httptest.Server

	mu       sync.Mutex
	answer   func(w http.ResponseWriter) bool // answers in place of the endpoint if it returns true; nil: never
	life     int                              // seconds
	refresh  string                           // the valid refresh token
	former   string                           // another one, which it replaced and still accepts; "": none
	sent     []string                         // refresh tokens
	forms    []map[string][]string
	inBody   bool // takes the client in the body alone
	refused  int  // requests with another client
	inFlight int
	most     int // requests at a time
}

func newTokenEndpoint(t *testing.T) *endpoint {
	e := &endpoint{life: 3600, refresh: "first"}
	e.Server = httptest.NewTLSServer(e)
	t.Cleanup(e.Close)
	return e
}

// ServeHTTP gives the tokens token-1, token-2 and so on.
func (e *endpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.inFlight++
	defer func() { e.inFlight-- }()
	e.most = max(e.most, e.inFlight)
	w.Header().Set("Content-Type", "application/json")
	if e.answer != nil && e.answer(w) {
		return
	}
	id, secret, _ := r.BasicAuth()
	if e.inBody {
		id, secret = r.PostFormValue("client_id"), r.PostFormValue("client_secret")
	}
	if r.ParseForm() != nil || (id != "client" || secret != canary) && !r.PostForm.Has("assertion") {
		e.refused++
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = fmt.Fprintf(w, `{"error":"invalid_client","error_description":%q}`, secret)
		return
	}
	answer := map[string]any{"access_token": fmt.Sprintf("token-%d", len(e.forms)+1), "token_type": "Bearer", "expires_in": e.life}
	if r.Form.Get("grant_type") == "refresh_token" {
		sent := r.Form.Get("refresh_token")
		e.sent = append(e.sent, sent)
		if sent != e.refresh && (e.former == "" || sent != e.former) {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = w.Write([]byte(`{"error":"invalid_grant"}`))
			return
		}
		e.refresh = fmt.Sprintf("refresh-%d", len(e.forms)+1)
		answer["refresh_token"] = e.refresh
	}
	e.forms = append(e.forms, r.Form)
	_ = json.NewEncoder(w).Encode(answer)
}

// set changes the endpoint.
func (e *endpoint) set(change func(e *endpoint)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	change(e)
}

// environ lets an operator fetch tokens on this machine.
func (e *endpoint) environ() map[string]string {
	return map[string]string{"FETCH_CREDENTIALS": "true", "PROXY_ALLOWED_RANGES": "127.0.0.0/8"}
}

// credential returns a Credential whose token comes from the endpoint. The Secret "client" has its secrets.
func (e *endpoint) credential(name string, grant resource.OAuth2Grant) *v1alpha1.Credential {
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: e.Certificate().Raw})
	from := &resource.OAuth2{
		TokenURL: e.URL + "/token", Grant: grant, ClientID: "client", CABundle: string(ca),
		ClientSecretRef: &resource.SecretKeyRef{Name: "client", Key: "secret"},
	}
	if grant == resource.RefreshToken {
		from.RefreshTokenRef = &resource.SecretKeyRef{Name: "client", Key: "refresh"}
	}
	return &v1alpha1.Credential{ObjectMeta: named(name), Spec: resource.CredentialSpec{
		ProjectID: "pr_1", Environment: "prod", ID: "cred_" + name, ValueFrom: resource.ValueSource{OAuth2: from},
	}}
}

// clientSecret returns the Secret that the endpoint's Credentials name.
func clientSecret() *corev1.Secret {
	return newSecret(named("client"), map[string]string{"secret": canary + "\n", "refresh": "first"})
}

// clock is the time of operators, which a test moves on.
type clock struct{ ahead atomic.Int64 }

func (c *clock) now() time.Time { return time.Now().Add(time.Duration(c.ahead.Load())) }

// set makes an operator use the clock.
func (c *clock) set(cfg *Config) { cfg.Now = c.now }

// later moves the clock on, and touches the client's Secret, so that the operator looks at the Credentials that name it.
func (c *clock) later(t *testing.T, cluster *kubetest.Cluster, d time.Duration) {
	t.Helper()
	c.ahead.Add(int64(d))
	kubetest.Change(t, cluster, newSecret(in(cluster.Namespace, "client"), nil), func(s *corev1.Secret) {
		s.Labels = map[string]string{"touched": fmt.Sprint(c.ahead.Load())}
	})
}

// awaitToken waits until the proxy has a token.
func awaitToken(t *testing.T, c *kubetest.Cluster, cred *v1alpha1.Credential, want string) {
	t.Helper()
	key := string(cred.UID) + "_" + cred.Name + "-oauth2_access-token"
	eventually.Succeeds(t, "the proxy has the token "+want, func() error {
		var s corev1.Secret
		if err := c.Client.Get(t.Context(), client.ObjectKey{Namespace: c.Namespace, Name: "lectern-proxy-values"}, &s); err != nil {
			return err
		}
		if got := string(s.Data[key]); got != want {
			return fmt.Errorf("the proxy has %q", got)
		}
		return nil
	})
}

// The operator fetches a token, replaces it before it expires, and after a change of the request. A token stays while the
// endpoint fails, and goes when it expires.
func TestFetchedCredential(t *testing.T) {
	t.Parallel()
	c := kubetest.Start(t)
	e := newTokenEndpoint(t)
	var now clock
	o := start(t, c, e.environ(), now.set)
	cred := e.credential("a", resource.ClientCredentials)
	cred.Spec.ValueFrom.OAuth2.Scopes, cred.Spec.ValueFrom.OAuth2.Audience = []string{"read", "write"}, "https://api.example.com"
	c.Create(t, cred)
	if says := c.AwaitReady(t, cred, v1alpha1.ReasonSecretNotFound).Message; says != `spec.valueFrom.oauth2.clientSecretRef: there is no Secret "client"` {
		t.Errorf("says %s", says)
	}
	secret := clientSecret()
	c.Create(t, secret)
	if says := c.AwaitReady(t, cred, v1alpha1.ReasonValid).Message; !strings.HasPrefix(says, "The operator fetched a token that expires at ") {
		t.Errorf("says %s", says)
	}
	awaitToken(t, c, cred, "token-1")
	e.set(func(e *endpoint) {
		e.life = -1
		if got := fmt.Sprint(e.forms); got != "[map[audience:[https://api.example.com] grant_type:[client_credentials] scope:[read write]]]" {
			t.Errorf("was asked %s", got)
		}
		e.answer = func(w http.ResponseWriter) bool {
			http.Error(w, canary, http.StatusServiceUnavailable)
			return true
		}
	})
	kubetest.Change(t, c, cred, func(c *v1alpha1.Credential) { c.Spec.ValueFrom.OAuth2.Scopes = nil })
	said := c.AwaitReady(t, cred, v1alpha1.ReasonFetchFailing)
	if said.Status != metav1.ConditionTrue || !strings.HasSuffix(said.Message, "and retries: the token endpoint answered with status 503.") {
		t.Errorf("says %+v", said)
	}
	awaitToken(t, c, cred, "token-1")
	e.set(func(e *endpoint) { e.answer = nil })
	now.later(t, c, 10*time.Second)
	if said := c.AwaitReady(t, cred, v1alpha1.ReasonValid); said.Status != metav1.ConditionTrue || !strings.HasSuffix(said.Message, " Warning: the expires_in of the token endpoint's answer is no life, so the operator assumes an hour.") {
		t.Errorf("says %+v", said)
	}
	awaitToken(t, c, cred, "token-2")
	e.set(func(e *endpoint) { e.life = 3600 })
	now.later(t, c, 41*time.Minute) // two thirds of the assumed life of token-2
	awaitToken(t, c, cred, "token-3")
	awaitFormer(t, c, now.now, map[types.UID]string{cred.UID: "a"}, "a: token-1 0", "a: token-2 0")
	e.set(func(e *endpoint) {
		e.answer = func(w http.ResponseWriter) bool {
			w.WriteHeader(http.StatusBadGateway)
			return true
		}
	})
	now.later(t, c, 41*time.Minute)
	if said := c.AwaitReady(t, cred, v1alpha1.ReasonFetchFailing); said.Status != metav1.ConditionTrue {
		t.Errorf("says %+v", said)
	}
	awaitToken(t, c, cred, "token-3")
	now.later(t, c, 20*time.Minute)
	awaitToken(t, c, cred, "")
	eventually.True(t, "the condition says that no token is valid", func() bool {
		return c.AwaitReady(t, cred, v1alpha1.ReasonFetchFailing).Status == metav1.ConditionFalse
	})
	e.set(func(e *endpoint) { e.answer = nil })
	now.later(t, c, 41*time.Minute)
	c.AwaitReady(t, cred, v1alpha1.ReasonValid)
	for _, text := range append(c.Events(t, cred), o.log.String()) {
		if strings.Contains(text, canary) || strings.Contains(text, "token-1") {
			t.Errorf("shows a secret: %s", text)
		}
	}
}

// TestTokenRequests checks what the operator sends for each kind of spec. A new value of lectern.dev/fetch makes it send the
// same again at once, in the way that the endpoint took.
func TestTokenRequests(t *testing.T) {
	t.Parallel()
	c := kubetest.Start(t)
	e := newTokenEndpoint(t)
	var now clock
	start(t, c, e.environ(), now.set)
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	pkcs8 := string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
	pkcs1 := string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}))
	file, err := json.Marshal(map[string]string{"type": "service_account", "private_key": pkcs8, "private_key_id": "k1"})
	if err != nil {
		t.Fatal(err)
	}
	c.Create(t, clientSecret(), newSecret(named("keys"), map[string]string{"file": string(file), "pkcs1": pkcs1, "none": "canary", "long": longKey(t)}))
	bearer := func(key string) func(*resource.OAuth2) {
		return func(from *resource.OAuth2) {
			from.Grant, from.ClientSecretRef, from.PrivateKeyRef = resource.JWTBearer, nil, &resource.SecretKeyRef{Name: "keys", Key: key}
		}
	}
	const bearerForm = "map[assertion:[signed] grant_type:[urn:ietf:params:oauth:grant-type:jwt-bearer]]"
	for i, tt := range []struct {
		name    string
		inBody  bool
		change  func(from *resource.OAuth2)
		form    string // of each request; "": there is none
		claims  string
		refused int    // requests by the other way
		says    string // the end of the condition's message
	}{
		{name: "parameters", change: func(from *resource.OAuth2) {
			from.GrantType, from.Parameters = "account_credentials", map[string]resource.Parameter{"account_id": "a&b"}
		}, form: "map[account_id:[a&b] grant_type:[account_credentials]]"},
		{name: "body", inBody: true, change: func(*resource.OAuth2) {}, refused: 1,
			form: "map[client_id:[client] client_secret:[" + canary + "] grant_type:[client_credentials]]",
			says: " The token endpoint takes clientAuthentication: Body, and refused another."},
		{name: "a service account of Google", change: func(from *resource.OAuth2) {
			bearer("file")(from)
			from.Scopes, from.Subject = []string{"a", "b"}, "ann@example.com"
		}, form: bearerForm, claims: "k1: client for ann@example.com at " + e.URL + "/token, a b"},
		{name: "another audience", change: func(from *resource.OAuth2) {
			bearer("pkcs1")(from)
			from.Audience = "https://login.example.com"
		}, form: bearerForm, claims: ": client for <nil> at https://login.example.com, <nil>"},
		{name: "a long key", change: bearer("long"), says: " retries: privateKeyRef names a key of 10001 bits; allowed: up to 8192."},
		{name: "no key", change: bearer("none"), says: " retries: privateKeyRef names no RSA key in PEM, and no JSON file with one."},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e.set(func(e *endpoint) { e.inBody, e.forms, e.refused = tt.inBody, nil, 0 })
			cred := e.credential(fmt.Sprintf("q%d", i), resource.ClientCredentials)
			tt.change(cred.Spec.ValueFrom.OAuth2)
			c.Create(t, cred)
			if tt.form == "" {
				if said := c.AwaitReady(t, cred, v1alpha1.ReasonFetchFailing).Message; !strings.HasSuffix(said, tt.says) {
					t.Errorf("says %s", said)
				}
				return
			}
			awaitToken(t, c, cred, "token-1")
			kubetest.Change(t, c, cred, func(c *v1alpha1.Credential) { c.Annotations = map[string]string{"lectern.dev/fetch": "1"} })
			awaitToken(t, c, cred, "token-2")
			kubetest.Change(t, c, cred, func(c *v1alpha1.Credential) { c.Annotations = nil })
			now.later(t, c, time.Minute)
			if said := c.AwaitReady(t, cred, v1alpha1.ReasonValid).Message; !strings.HasSuffix(said, tt.says) {
				t.Errorf("says %s", said)
			}
			e.set(func(e *endpoint) {
				if e.refused != tt.refused {
					t.Errorf("%d refused requests", e.refused)
				}
				for _, form := range e.forms {
					if assertion := form["assertion"]; assertion != nil {
						form["assertion"] = []string{"signed"}
						if got := claimsOf(t, assertion[0], &key.PublicKey); got != tt.claims {
							t.Errorf("asserts %s", got)
						}
					}
					if got := fmt.Sprint(form); got != tt.form {
						t.Errorf("was asked %s", got)
					}
				}
			})
			c.Delete(t, cred)
		})
	}
}

// longKey returns an RSA key of 10,001 bits in PEM. Its factors are no primes, which takes no time to find.
func longKey(t *testing.T) string {
	one, e := big.NewInt(1), big.NewInt(65537)
	minus1 := func(n *big.Int) *big.Int { return new(big.Int).Sub(n, one) }
	p, q := new(big.Int).Add(new(big.Int).Lsh(one, 5000), one), new(big.Int).Add(new(big.Int).Lsh(big.NewInt(3), 4999), one)
	d := new(big.Int).ModInverse(e, new(big.Int).Mul(minus1(p), minus1(q)))
	der, err := asn1.Marshal(struct{ Version, N, E, D, P, Q, Dp, Dq, Inverse *big.Int }{
		new(big.Int), new(big.Int).Mul(p, q), e, d, p, q, new(big.Int).Mod(d, minus1(p)), new(big.Int).Mod(d, minus1(q)), new(big.Int).ModInverse(q, p),
	})
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: der}))
}

// claimsOf returns what an assertion claims, after a check of its signature and its life.
func claimsOf(t *testing.T, assertion string, key *rsa.PublicKey) string {
	t.Helper()
	token, err := jwt.ParseSigned(assertion, []jose.SignatureAlgorithm{jose.RS256})
	if err != nil {
		t.Fatal(err)
	}
	var claims map[string]any
	var standard jwt.Claims
	if err := token.Claims(key, &claims, &standard); err != nil {
		t.Fatal(err)
	}
	if life := standard.Expiry.Time().Sub(standard.IssuedAt.Time()); life > 3*time.Minute || standard.Validate(jwt.Expected{}) != nil || standard.ID == "" {
		t.Errorf("a life of %v in %v", life, claims)
	}
	return fmt.Sprintf("%s: %v for %v at %v, %v", token.Headers[0].KeyID, claims["iss"], claims["sub"], claims["aud"], claims["scope"])
}

// An operator that takes over in the middle of a request sends no second one, and uses the refresh token of its answer.
func TestRefreshTokenIsUsedOnce(t *testing.T) {
	t.Parallel()
	c := kubetest.Start(t)
	e := newTokenEndpoint(t)
	var now clock
	first := start(t, c, e.environ(), now.set)
	begun, goOn := make(chan struct{}), make(chan struct{})
	e.set(func(e *endpoint) {
		e.life = 12
		e.answer = func(http.ResponseWriter) bool {
			if e.answer != nil {
				e.answer = nil
				close(begun)
				e.mu.Unlock() // for other requests
				<-goOn
				e.mu.Lock()
			}
			return false
		}
	})
	cred := e.credential("a", resource.RefreshToken)
	secret := clientSecret()
	c.Create(t, secret, cred)
	<-begun
	stopped := make(chan error, 1)
	go func() { stopped <- first.Stop() }()
	start(t, c, e.environ(), now.set)
	close(goOn)
	if err := <-stopped; err != nil {
		t.Error(err)
	}
	awaitToken(t, c, cred, "token-2") // ten seconds later, which the operator waits for itself
	e.set(func(e *endpoint) {
		if e.most != 1 {
			t.Errorf("%d requests at a time", e.most)
		}
		e.refresh = "lost" // as after an answer that no operator could write
	})
	now.later(t, c, 10*time.Second)
	said := c.AwaitReady(t, cred, v1alpha1.ReasonFetchFailing).Message
	if !strings.HasSuffix(said, `the token endpoint answered with status 400 and the error invalid_grant: the refresh token is used up or revoked; put another into the key "refresh" of the Secret "client".`) {
		t.Errorf("says %s", said)
	}
	// The first request with the new token fails. The operator sends the new token again, and not the old one.
	failed := false
	e.set(func(e *endpoint) {
		e.answer = func(w http.ResponseWriter) bool {
			if failed {
				return false
			}
			failed = true
			w.WriteHeader(http.StatusServiceUnavailable)
			return true
		}
	})
	kubetest.Change(t, c, secret, func(s *corev1.Secret) { s.Data["refresh"] = []byte("lost") })
	eventually.True(t, "the request fails", func() (done bool) {
		e.set(func(*endpoint) { done = failed })
		return done
	})
	now.later(t, c, 10*time.Second)
	c.AwaitReady(t, cred, v1alpha1.ReasonValid)
}

// Two operators that both act, as for a moment after a lost Lease, send one request at a time. If both are lost after the
// endpoint has replaced the refresh token, the next operator says what to do.
func TestTokenOfLostOperators(t *testing.T) {
	t.Parallel()
	c := kubetest.Start(t)
	e := newTokenEndpoint(t)
	var now clock
	environ := e.environ()
	environ["LEADER_ELECTION"] = "false"
	operators := []*running{start(t, c, environ, now.set), start(t, c, environ, now.set)}
	cred, secret := e.credential("a", resource.RefreshToken), clientSecret()
	c.Create(t, secret, cred)
	for n := range 3 {
		awaitToken(t, c, cred, fmt.Sprintf("token-%d", n+1))
		e.set(func(e *endpoint) {
			if e.most != 1 {
				t.Errorf("%d requests at a time", e.most)
			}
			if n == 2 {
				e.answer = func(http.ResponseWriter) bool {
					for _, o := range operators {
						o.Requests.Cut()
					}
					e.answer, e.refresh = nil, "lost"
					return true
				}
			}
		})
		now.later(t, c, time.Hour)
	}
	eventually.True(t, "the operators have asked once more", func() (asked bool) {
		e.set(func(e *endpoint) { asked = e.refresh == "lost" })
		return asked
	})
	for _, o := range operators {
		_ = o.Stop() // an operator that is cut off may say so
	}
	now.ahead.Add(int64(2 * time.Minute)) // the claim of the lost operators is over
	start(t, c, environ, now.set)
	if said := c.AwaitReady(t, cred, v1alpha1.ReasonFetchFailing).Message; !strings.Contains(said, `invalid_grant: the refresh token is used up or revoked; put another into the key "refresh" of the Secret "client"`) {
		t.Errorf("says %s", said)
	}
	kubetest.Change(t, c, secret, func(s *corev1.Secret) { s.Data["refresh"] = []byte("lost") })
	c.AwaitReady(t, cred, v1alpha1.ReasonValid)
}

// A token endpoint that misbehaves, and a spec that is not allowed, give a sentence that says so, and no token.
func TestTokenEndpointRefused(t *testing.T) {
	t.Parallel()
	c := kubetest.Start(t)
	e := newTokenEndpoint(t)
	plain := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(plain.Close)
	environ := e.environ()
	environ["PROXY_ALLOWED_RANGES"] = "127.0.0.1/32"
	start(t, c, environ, nil)
	c.Create(t, clientSecret())
	answers := func(write func(w http.ResponseWriter)) func(http.ResponseWriter) bool {
		return func(w http.ResponseWriter) bool {
			write(w)
			return true
		}
	}
	for i, tt := range []struct {
		name   string
		answer func(w http.ResponseWriter) bool
		change func(from *resource.OAuth2)
		want   string
	}{
		{"a redirect", answers(func(w http.ResponseWriter) { w.Header().Set("Location", e.URL); w.WriteHeader(http.StatusFound) }), nil,
			"the token endpoint answered with status 302, a redirect, which the operator does not follow"},
		{"no JSON", answers(func(w http.ResponseWriter) { _, _ = w.Write([]byte("<html>" + canary)) }), nil, "the answer of the token endpoint cannot be read"},
		{"too long", answers(func(w http.ResponseWriter) {
			_, _ = fmt.Fprintf(w, `{"filler":%q,"access_token":"x"}`, strings.Repeat("x", 64<<10))
		}), nil, "the answer of the token endpoint cannot be read"},
		{"a long token", answers(func(w http.ResponseWriter) {
			_, _ = fmt.Fprintf(w, `{"access_token":%q}`, strings.Repeat("x", 20<<10))
		}), nil, "a token of 20480 bytes; allowed: up to 16384"},
		{"another client", nil, func(from *resource.OAuth2) { from.ClientID = "stranger" }, "status 401 and the error invalid_client, by clientAuthentication: Header and by Body."},
		{"a private address", nil, func(from *resource.OAuth2) { from.TokenURL = "https://127.0.0.2/token" }, "the host of tokenURL has an address that is not a public one"},
		{"a private name", nil, func(from *resource.OAuth2) { from.TokenURL = "https://[::ffff:10.0.0.1]/token" }, "not a public one"},
		{"no certificate", nil, func(from *resource.OAuth2) { from.CABundle = "" }, "the certificate of the token endpoint is not trusted"},
		{"no https", nil, func(from *resource.OAuth2) { from.TokenURL = strings.Replace(plain.URL, "http:", "https:", 1) }, "the request to the token endpoint failed"},
		{"nobody", nil, func(from *resource.OAuth2) { from.TokenURL = "https://127.0.0.1:1/token" }, "the token endpoint cannot be reached"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e.set(func(e *endpoint) { e.answer = tt.answer })
			cred := e.credential(fmt.Sprintf("r%d", i), resource.ClientCredentials)
			if tt.change != nil {
				tt.change(cred.Spec.ValueFrom.OAuth2)
			}
			c.Create(t, cred)
			if said := c.AwaitReady(t, cred, v1alpha1.ReasonFetchFailing); said.Status != metav1.ConditionFalse || !strings.Contains(said.Message, tt.want) || strings.Contains(said.Message, canary) {
				t.Errorf("says %+v", said)
			}
			c.Delete(t, cred)
		})
	}
	for name, tt := range map[string]struct {
		change func(from *resource.ValueSource)
		want   string
	}{
		"http":             {func(from *resource.ValueSource) { from.OAuth2.TokenURL = "http://example.com/" }, "tokenURL is http://example.com/; allowed: an https URL"},
		"user":             {func(from *resource.ValueSource) { from.OAuth2.TokenURL = "https://a:b@example.com/" }, "allowed: an https URL without user"},
		"both":             {func(from *resource.ValueSource) { from.SecretKeyRef = resource.SecretKeyRef{Name: "a", Key: "b"} }, "exactly one of secretKeyRef and oauth2"},
		"neither":          {func(from *resource.ValueSource) { from.OAuth2 = nil }, "exactly one of secretKeyRef and oauth2"},
		"no refresh token": {func(from *resource.ValueSource) { from.OAuth2.Grant = resource.RefreshToken }, "refreshTokenRef is required"},
		"no secret":        {func(from *resource.ValueSource) { from.OAuth2.ClientSecretRef = nil }, "clientSecretRef is required"},
		"no key":           {func(from *resource.ValueSource) { from.OAuth2.Grant = resource.JWTBearer }, "privateKeyRef is required"},
		"no subject":       {func(from *resource.ValueSource) { from.OAuth2.Subject = "ann" }, "subject has no meaning without grant: JWTBearer"},
		"a secret": {func(from *resource.ValueSource) {
			from.OAuth2.Parameters = map[string]resource.Parameter{"client_secret": "x"}
		}, "none of grant_type, client_id, client_secret"},
		"a scope in two": {func(from *resource.ValueSource) { from.OAuth2.Scopes = []string{"a b"} }, "scopes[0]"},
	} {
		cred := e.credential("spec", resource.ClientCredentials)
		cred.Namespace = c.Namespace
		tt.change(&cred.Spec.ValueFrom)
		if err := c.Client.Create(t.Context(), cred); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	sly := e.credential("sly", resource.ClientCredentials)
	sly.Spec.ValueFrom.OAuth2.ClientSecretRef.Name = "lectern-proxy-values"
	c.Create(t, sly)
	c.AwaitReady(t, sly, v1alpha1.ReasonInvalid)
	taken := e.credential("taken", resource.ClientCredentials)
	e.set(func(e *endpoint) { e.answer = nil })
	heavy := e.credential("heavy", resource.ClientCredentials)
	heavy.Spec.ValueFrom.OAuth2.ClientSecretRef.Name = "heavy"
	c.Create(t, newSecret(named("heavy"), map[string]string{"secret": strings.Repeat("x", 16<<10+1)}), heavy)
	c.AwaitReady(t, heavy, v1alpha1.ReasonSecretValueInvalid)
	c.Create(t, newSecret(named("taken-oauth2"), map[string]string{"mine": "x"}), taken)
	c.AwaitReady(t, taken, v1alpha1.ReasonSecretNotOwned)
}

// Slow token endpoints delay neither Credentials of other namespaces nor those that name their value.
func TestManySlowTokenEndpoints(t *testing.T) {
	t.Parallel()
	c := kubetest.Start(t)
	e := newTokenEndpoint(t)
	team := c.NewNamespace(t)
	environ := e.environ()
	environ["WATCH_NAMESPACES"] = c.Namespace + "," + team
	start(t, c, environ, nil)
	goOn := make(chan struct{})
	var slowly, most atomic.Int64
	slow := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for now, n := slowly.Add(1), most.Load(); now > n && !most.CompareAndSwap(n, now); n = most.Load() {
		}
		defer slowly.Add(-1)
		select {
		case <-goOn:
		case <-r.Context().Done():
		}
		e.ServeHTTP(w, r)
	}))
	t.Cleanup(slow.Close)
	c.Create(t, clientSecret())
	const many = 20 // fewer than are fetched at a time, and more than those of one namespace
	var all []*v1alpha1.Credential
	for i := range many {
		cred := e.credential(fmt.Sprintf("s%d", i), resource.ClientCredentials)
		cred.Spec.ValueFrom.OAuth2.TokenURL = slow.URL
		all = append(all, cred)
		c.Create(t, cred)
	}
	ordinary := newCredential(named("ordinary"), "pr_1", "cred_ordinary", "client")
	ordinary.Spec.ValueFrom.SecretKeyRef.Key = "secret"
	c.Create(t, ordinary)
	c.AwaitReady(t, ordinary, v1alpha1.ReasonValid)
	theirs, secret, project := e.credential("theirs", resource.ClientCredentials), clientSecret(), newProject(in(team, "pr-2"), "pr_2")
	theirs.Namespace, theirs.Spec.ProjectID, secret.Namespace = team, "pr_2", team
	c.Create(t, project, secret, theirs)
	c.AwaitReady(t, theirs, v1alpha1.ReasonValid)
	if n := most.Load(); n == many {
		t.Errorf("%d tokens of one namespace were requested at a time", n)
	}
	close(goOn)
	for _, cred := range all {
		c.AwaitReady(t, cred, v1alpha1.ReasonValid)
	}
}
