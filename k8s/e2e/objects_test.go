package e2e

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"
)

// consumed is the last report of the sample consumer.
type consumed struct {
	Reads, Failed, Keys int
	LastError           string `json:"last_error"`
}

// consumed returns the last report of a Deployment of the sample consumer.
func (r *release) consumed(t testing.TB, deployment string) (consumed, error) {
	out, err := r.tryKubectl(t.Context(), "", "logs", "deployment/"+deployment, "--tail=1")
	if err != nil {
		return consumed{}, err
	}
	var c consumed
	if err := json.Unmarshal([]byte(out), &c); err != nil {
		return consumed{}, fmt.Errorf("the %s says %q: %w", deployment, out, err)
	}
	return c, nil
}

// testConsumer checks that a pod can read entries with the key in the mounted Secret of an APIKey.
func (r *release) testConsumer(t *testing.T) {
	r.apply(t, r.manifest(t, "testdata/consumer.yaml"), "apply", "-f", "-")
	r.awaitReads(t, "consumer")
}

// awaitReads waits until a Deployment of the sample consumer has read.
func (r *release) awaitReads(t *testing.T, deployment string) {
	t.Helper()
	r.kubectl(t, "rollout", "status", "--timeout=5m", "deployment/"+deployment)
	eventually(t, "reads by the "+deployment, func() error {
		c, err := r.consumed(t, deployment)
		if err != nil || c.Reads == 0 {
			return fmt.Errorf("%+v, %w", c, err)
		}
		return nil
	})
}

// testRotate requests another key. testRotated checks later that the consumer uses it without a failed request.
func (r *release) testRotate(t *testing.T) {
	before := r.kubectl(t, "get", "apikey", "demo", "-o", "jsonpath={.status.keyId}")
	r.kubectl(t, "annotate", "--overwrite", "apikey", "demo", "lectern.dev/rotate=first")
	took := eventually(t, "another key", func() error {
		if now := r.kubectl(t, "get", "apikey", "demo", "-o", "jsonpath={.status.keyId}"); now == before {
			return fmt.Errorf("still %s", now)
		}
		return nil
	})
	old := r.apiKey
	r.apiKey = r.secret(t, "lectern-demo", "api-key")
	if old == r.apiKey {
		t.Error("the Secret still holds the key before")
	}
	for name, key := range map[string]string{"the key before": old, "the new key": r.apiKey} {
		if status, _, body, err := r.get(t.Context(), "/projects/pr_demo/entries", key); err != nil || status != 200 {
			t.Errorf("%s: %d, %v: %.200s", name, status, err, body)
		}
	}
	t.Logf("rotated after %v", took.Round(time.Millisecond))
}

func (r *release) testRotated(t *testing.T) {
	r.updateFiles(t, "app=consumer")
	var c consumed
	eventually(t, "the consumer with two keys", func() error {
		var err error
		if c, err = r.consumed(t, "consumer"); err != nil || c.Keys < 2 {
			return fmt.Errorf("%+v, %w", c, err)
		}
		return nil
	})
	if c.Failed > 0 {
		t.Errorf("of the consumer's requests %d failed, the last with %s", c.Failed, c.LastError)
	}
	t.Logf("the consumer: %d reads, %d failed, %d keys, over rotation, upgrade, rollback, evictions and another Secret", c.Reads, c.Failed, c.Keys)
}

// answerOfEcho is an answer of the third party.
type answerOfEcho struct {
	Authorization string `json:"authorization_sha256"`
}

// callThirdParty calls the third party through the ingress and the credential proxy, as a page of app.example.com
// would. It returns the status and the digest of the header that arrived.
func (r *release) callThirdParty(t *testing.T) (int, string, error) {
	target := fmt.Sprintf("http://echo.%s.svc.cluster.local:8080/v1/charges", r.namespace)
	status, header, body, err := r.get(t.Context(), "/proxy?url="+url.QueryEscape(target), "",
		"Origin", "https://app.example.com", "X-Project-ID", "pr_demo", "X-Environment", "prod",
		"Authorization", "Bearer {{ cred_third_party }}")
	if err != nil {
		return 0, "", err
	}
	if status != http.StatusOK {
		return status, "", fmt.Errorf("%d: %.200s", status, body)
	}
	if got := header.Get("Access-Control-Allow-Origin"); got != "https://app.example.com" {
		return status, "", fmt.Errorf("Access-Control-Allow-Origin %q", got)
	}
	var a answerOfEcho
	if err := json.Unmarshal(bytes.TrimSpace(body), &a); err != nil {
		return status, "", err
	}
	return status, a.Authorization, nil
}

func digestOf(value string) string {
	sum := sha256.Sum256([]byte("Bearer " + value))
	return hex.EncodeToString(sum[:])
}

// testProxy checks that a Credential and a ProxyEndpoint let a page call the third party. A change of either of them,
// or of the Secret, takes effect within a second.
func (r *release) testProxy(t *testing.T) {
	r.apply(t, strings.ReplaceAll(r.manifest(t, "testdata/proxy.yaml"), "FIRST_VALUE", "first-secret-value"), "apply", "-f", "-")
	await := func(what string, want func(status int, digest string, err error) bool) time.Duration {
		t.Helper()
		return eventually(t, what, func() error {
			status, digest, err := r.callThirdParty(t)
			if !want(status, digest, err) {
				return fmt.Errorf("%d, digest %q, %w", status, digest, err)
			}
			return nil
		})
	}
	value := func(v string) func(int, string, error) bool {
		return func(status int, digest string, err error) bool { return err == nil && digest == digestOf(v) }
	}
	applied := await("the first call", value("first-secret-value"))
	t.Run("browser", func(t *testing.T) { r.testBrowser(t, "first-secret-value") })
	// The pods of the proxy learn on their own: one answer could come from one that knows already.
	settled := func(want func(int, string, error) bool) func(int, string, error) bool {
		return func(status int, digest string, err error) bool {
			for range 8 {
				if !want(status, digest, err) {
					return false
				}
				status, digest, err = r.callThirdParty(t)
			}
			return true
		}
	}
	var took []time.Duration
	for n := range 2 {
		v := fmt.Sprintf("another-secret-value-%d", n)
		r.kubectl(t, "patch", "secret", "third-party", "--type=merge", "-p", fmt.Sprintf(`{"stringData":{"token":%q}}`, v))
		took = append(took, await("a changed Secret", settled(value(v))))
		r.kubectl(t, "patch", "proxyendpoint", "app", "--type=merge", "-p", `{"spec":{"methods":["POST"]}}`)
		took = append(took, await("a method that is not allowed", settled(func(status int, _ string, _ error) bool { return status == http.StatusForbidden })))
		r.kubectl(t, "patch", "proxyendpoint", "app", "--type=merge", "-p", `{"spec":{"methods":["GET"]}}`)
		took = append(took, await("a method that is allowed", settled(value(v))))
	}
	slices.Sort(took)
	t.Logf("the first call worked %v after its objects were applied; a change was seen by all pods after %v, at most %v, of which kubectl's end is the beginning",
		applied.Round(time.Millisecond), took[len(took)/2].Round(time.Millisecond), took[len(took)-1].Round(time.Millisecond))
	if slowest := took[len(took)-1]; slowest > 30*time.Second { // a busy machine needs seconds; without a watch, it would be a minute
		t.Errorf("a change took %v; want it at once", slowest)
	}
	status, _, err := func() (int, string, error) {
		r.kubectl(t, "delete", "credential", "third-party")
		await("a credential that is gone", settled(func(status int, _ string, _ error) bool { return status == http.StatusNotFound }))
		return r.callThirdParty(t)
	}()
	if status != http.StatusNotFound {
		t.Errorf("without the credential: %d, %v; want 404", status, err)
	}
}
