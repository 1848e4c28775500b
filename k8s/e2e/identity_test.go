package e2e

import (
	"bytes"
	"crypto"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// tokenValues writes the values with which services accept tokens of the cluster, and region those of the reader. It returns the
// file.
func (r *release) tokenValues(t *testing.T) string {
	t.Helper()
	var about struct{ Issuer string }
	if err := json.Unmarshal([]byte(r.kubectl(t, "get", "--raw", "/.well-known/openid-configuration")), &about); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(r.folder, "tokens.yaml")
	if err := os.WriteFile(file, fmt.Appendf(nil, "tokens: {cluster: {enabled: true, issuer: %q}, internalIdentities: [{namespace: %s, serviceAccount: reader}]}\n",
		about.Issuer, r.namespace), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// testIdentity checks that a pod without a Secret reads entries and looks regions up with the token of its ServiceAccount. Under
// load of tokens, it replaces the token, restarts every service, and gives the API server another signing key. No request fails.
// Meanwhile tokens that prove no granted identity are refused.
func (r *release) testIdentity(t *testing.T) {
	r.apply(t, r.manifest(t, "testdata/identity.yaml"), "apply", "-f", "-")
	r.kubectl(t, "wait", "--for=condition=Ready", "--timeout=5m", "apikey/reader")
	if secrets := r.kubectl(t, "get", "secrets", "-o", "name"); strings.Contains(secrets, "secret/reader") {
		t.Error("the APIKey of a ServiceAccount has a Secret")
	}
	r.awaitReads(t, "reader")

	var token atomic.Pointer[string]
	renew := func() {
		t.Helper()
		fresh := r.token(t, r.namespace, "reader", "lectern")
		r.awaitAccepted(t, fresh)
		token.Store(&fresh)
	}
	renew()
	// The answer of getKey has the token's expiry, so it changes with the token.
	calls := slices.DeleteFunc(r.everyOperation(), func(c call) bool { return c.key == "" || c.operation == "getKey" })
	for i := range calls {
		calls[i].key, calls[i].token = "", func() string { return *token.Load() }
	}
	l := startLoad(t, r, 6, 100*time.Millisecond, calls)
	renew()
	r.restart(t, "entries", "embeddables", "experiments", "region")
	r.restart(t, "proxy", "console", "edge", "internal", "operator")
	if len(r.nodeExec) > 0 {
		r.rotateSigningKey(t)
		renew()
	} else {
		t.Log("nothing runs commands on this cluster's node: the API server's signing key stays, and tokens of it are not forged")
	}
	r.mustRefuse(t, *token.Load())
	l.mustBeClean(t, 2_000)
	c, err := r.consumed(t, "reader")
	if err != nil || c.Failed > 0 {
		t.Errorf("the reader: %+v, %v; want no failed request", c, err)
	}
	t.Logf("the reader: %d look-ups and reads, %d failed", c.Reads, c.Failed)
}

// testTokenRenewed checks that the reader uses a second token, which the kubelet writes after eight of ten minutes. No request of the
// reader has failed since its start.
func (r *release) testTokenRenewed(t *testing.T) {
	var c consumed
	eventually(t, "the reader with two tokens", func() error {
		var err error
		if c, err = r.consumed(t, "reader"); err != nil || c.Keys < 2 {
			return fmt.Errorf("%+v, %w", c, err)
		}
		return nil
	})
	if c.Failed > 0 {
		t.Errorf("of the reader's requests %d failed, the last with %s", c.Failed, c.LastError)
	}
	t.Logf("the reader: %d reads, %d failed, %d tokens", c.Reads, c.Failed, c.Keys)
}

// testAccountReplaced checks that the tokens of a deleted ServiceAccount end within seconds, and that a new account of the name is
// granted anew. Its APIKey waits while there is no account.
func (r *release) testAccountReplaced(t *testing.T) {
	r.apply(t, `{"apiVersion":"lectern.dev/v1alpha1","kind":"APIKey","metadata":{"name":"replaced"},"spec":{"projectId":"pr_demo","identity":{"serviceAccountRef":{"name":"replaced"}}}}`, "apply", "-f", "-")
	answers := func(what, token string, want int) {
		t.Helper()
		took := eventually(t, what, func() error {
			for range 10 { // of two pods
				if status, body := r.lookAt(t, "entries", token); status != want {
					return fmt.Errorf("%d: %.200s", status, body)
				}
			}
			return nil
		})
		t.Logf("%s: %d after %v", what, want, took.Round(100*time.Millisecond))
	}
	var old string
	for _, which := range []string{"an account", "a new account of the name"} {
		r.kubectl(t, "wait", "--for=jsonpath={.status.conditions[0].reason}=ServiceAccountNotFound", "--timeout=5m", "apikey/replaced")
		r.kubectl(t, "create", "serviceaccount", "replaced")
		token := r.token(t, r.namespace, "replaced", "lectern")
		answers(which, token, http.StatusOK)
		if old != "" {
			answers("the old token beside "+which, old, http.StatusUnauthorized)
		}
		old = token
		r.kubectl(t, "delete", "serviceaccount", "replaced")
		answers("the token after the deletion of "+which, old, http.StatusUnauthorized)
	}
	r.kubectl(t, "delete", "apikey/replaced")
}

// token returns a new token of a ServiceAccount. Without audiences it is for the API server.
func (r *release) token(t *testing.T, namespace, account string, audiences ...string) string {
	t.Helper()
	args := []string{"--namespace", namespace, "create", "token", account, "--duration", "1h"}
	for _, audience := range audiences {
		args = append(args, "--audience", audience)
	}
	return strings.TrimSpace(r.kubectl(t, args...))
}

// awaitAccepted waits until all pods accept a token. After an absence of its issuer, a pod needs seconds to read a new signing key.
func (r *release) awaitAccepted(t *testing.T, token string) {
	t.Helper()
	eventually(t, "a new token is accepted", func() error {
		for range 10 {
			for _, path := range []string{"entries", "embeddables", "experiments", "region"} {
				status, body := r.lookAt(t, path, token)
				if status != http.StatusOK {
					return fmt.Errorf("%s: %d: %.200s", path, status, body)
				}
			}
		}
		return nil
	})
}

// lookAt sends a token to the list of a resource, or to the look-up of regions.
func (r *release) lookAt(t *testing.T, resource, token string) (status int, body []byte) {
	t.Helper()
	c := call{method: http.MethodGet, path: "/projects/pr_demo/" + resource, token: func() string { return token }}
	if resource == "region" {
		c.method, c.path, c.body = http.MethodPost, "/api/projects/region", `{"projectId":"pr_demo"}`
	}
	status, body, err := c.do(t.Context(), http.DefaultClient, r.url)
	if err != nil {
		return 0, []byte(err.Error())
	}
	return status, body
}

// rotateSigningKey gives the API server another key, with which it signs tokens from now on. It accepts tokens of the earlier keys,
// too, as in a rotation without a gap.
func (r *release) rotateSigningKey(t *testing.T) {
	t.Helper()
	private, public := r.signingKeyFiles(t)
	before := strings.Count(r.kubectl(t, "get", "--raw", "/openid/v1/jwks"), `"kid"`)
	r.onNode(t, "sh", "-c", `openssl genrsa -out "$1.new" 2048 && openssl rsa -in "$1.new" -pubout >>"$2" && mv "$1.new" "$1"`, "sh", private, public)
	r.onNode(t, "kill", r.onNode(t, "pidof", "kube-apiserver"))
	took := eventually(t, "the API server with another key", func() error {
		out, err := r.tryKubectl(t.Context(), "", "get", "--raw", "/openid/v1/jwks")
		if n := strings.Count(out, `"kid"`); err != nil || n != before+1 {
			return fmt.Errorf("%d keys, %w", n, err)
		}
		return nil
	})
	t.Logf("the API server has another signing key after %v", took.Round(time.Second))
}

// signingKeyFiles returns the files of the API server's signing key and of the public keys that it accepts.
func (r *release) signingKeyFiles(t *testing.T) (private, public string) {
	t.Helper()
	for argument := range strings.SplitSeq(r.onNode(t, "cat", "/proc/"+r.onNode(t, "pidof", "kube-apiserver")+"/cmdline"), "\x00") {
		switch flag, value, _ := strings.Cut(argument, "="); flag {
		case "--service-account-signing-key-file":
			private = value
		case "--service-account-key-file":
			public = value
		}
	}
	if private == "" || public == "" || private == public {
		t.Fatalf("the API server signs with %q and accepts %q; want two files", private, public)
	}
	return private, public
}

// mustRefuse checks that services answer 401 to tokens that are no valid ones of the reader. A token of 1 MiB may get another
// refusal before it reaches a service. good is a valid token.
func (r *release) mustRefuse(t *testing.T, good string) {
	t.Helper()
	const elsewhere = "default" // another namespace, with an account of the same name
	r.kubectl(t, "--namespace", elsewhere, "create", "serviceaccount", "reader")
	defer r.kubectl(t, "--namespace", elsewhere, "delete", "serviceaccount", "reader")
	forged := map[string]string{
		"another audience": r.token(t, r.namespace, "reader", "other"), "the API server's audience": r.token(t, r.namespace, "reader"),
		"another namespace's account": r.token(t, elsewhere, "reader", "lectern"), "1 MiB": strings.Repeat("a", 1<<20),
	}
	if len(r.nodeExec) > 0 {
		maps.Copy(forged, r.forge(t, good))
	}
	for name, token := range forged {
		statuses := map[int]int{}
		for range 25 {
			for _, resource := range []string{"entries", "region"} {
				status, body := r.lookAt(t, resource, token)
				statuses[status]++
				if status == http.StatusOK || status != http.StatusUnauthorized && name != "1 MiB" {
					t.Errorf("%s, %s: %d: %.200s", name, resource, status, body)
				}
				rest(t.Context(), 20*time.Millisecond) // slower than the limit on guessing
			}
		}
		t.Logf("a token with %s: answers by status %v", name, statuses)
	}
}

// forge returns tokens that differ from good in one thing each. All but some are signed with the API server's own key.
func (r *release) forge(t *testing.T, good string) map[string]string {
	t.Helper()
	private, public := r.signingKeyFiles(t)
	block, _ := pem.Decode([]byte(r.onNode(t, "cat", private)))
	if block == nil {
		t.Fatalf("%s is no PEM", private)
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	own := parsed.(*rsa.PrivateKey)
	other, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	parts := strings.Split(good, ".")
	if len(parts) != 3 {
		t.Fatalf("the API server made a token of %d parts", len(parts))
	}
	// changed returns a part of good with another value of one field.
	changed := func(part, field string, value any) string {
		t.Helper()
		text, err := base64.RawURLEncoding.DecodeString(part)
		if err != nil {
			t.Fatal(err)
		}
		fields := map[string]any{}
		d := json.NewDecoder(bytes.NewReader(text))
		d.UseNumber()
		if err := d.Decode(&fields); err != nil {
			t.Fatal(err)
		}
		fields[field] = value
		if text, err = json.Marshal(fields); err != nil {
			t.Fatal(err)
		}
		return base64.RawURLEncoding.EncodeToString(text)
	}
	sign := func(key *rsa.PrivateKey, header, claims string) string {
		t.Helper()
		digest := sha256.Sum256([]byte(header + "." + claims))
		signature, err := rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA256, digest[:])
		if err != nil {
			t.Fatal(err)
		}
		return header + "." + claims + "." + base64.RawURLEncoding.EncodeToString(signature)
	}
	header, claims := parts[0], parts[1]
	if status, body := r.lookAt(t, "entries", sign(own, header, changed(claims, "note", "none"))); status != http.StatusOK {
		t.Fatalf("a token with one more claim: %d: %.200s; want 200, or else the other tokens show nothing", status, body)
	}
	symmetric := changed(header, "alg", "HS256") + "." + claims
	mac := hmac.New(sha256.New, []byte(r.onNode(t, "cat", public)+"\n"))
	mac.Write([]byte(symmetric))
	now := time.Now()
	return map[string]string{
		"another issuer":            sign(own, header, changed(claims, "iss", "https://issuer.example.com")),
		"a time in the past":        sign(own, header, changed(claims, "exp", now.Add(-2*time.Minute).Unix())),
		"a time in the future":      sign(own, header, changed(claims, "nbf", now.Add(2*time.Minute).Unix())),
		"no signature":              changed(header, "alg", "none") + "." + claims + ".",
		"the public key as secret":  symmetric + "." + base64.RawURLEncoding.EncodeToString(mac.Sum(nil)),
		"an unknown key":            sign(other, changed(header, "kid", "unknown"), claims),
		"another key of a known id": sign(other, header, claims),
		"9 KiB":                     sign(own, header, changed(claims, "note", strings.Repeat("a", 7<<10))),
	}
}
