package kubernetes_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lectern-dev/lectern/k8s/api/v1alpha1"
	"github.com/lectern-dev/lectern/k8s/manifests"
	"github.com/lectern-dev/lectern/k8s/testing/kubetest"
	"github.com/lectern-dev/lectern/proxy/resource"
	"github.com/lectern-dev/lectern/shared/testing/eventually"
)

// TestFormerValuesStayHidden changes credentials that a target keeps. The answers must show no value that a replica has
// sent. The answers are those of the replica itself, even of a stream under way, and of a replica that starts afterwards.
func TestFormerValuesStayHidden(t *testing.T) {
	c := start(t)
	kube := c.As(t, "proxy")
	p := startProxy(t, c, kube, nil)
	p.awaitReady(t)

	token := func(value string) map[string][]byte {
		state := fmt.Sprintf(`{"expiresAt":%q}`, time.Now().Add(time.Hour).Format(time.RFC3339))
		return map[string][]byte{manifests.AccessToken: []byte(value), "state": []byte(state)}
	}
	names := []string{"rotated", "unset", "taken", "deleted", "removed"}
	objects := []*v1alpha1.Credential{}
	secrets := map[string]*corev1.Secret{}
	for _, name := range names {
		objects, secrets[name] = append(objects, credential(name, p.project, "cred_"+name)), secret(name, "first value of "+name+"\n")
		c.Create(t, secrets[name], objects[len(objects)-1])
	}
	// The test does what the operator does after a fetch.
	fetched := credential("fetched", p.project, "cred_fetched")
	fetched.Spec.ValueFrom = resource.ValueSource{OAuth2: &resource.OAuth2{
		TokenURL: "https://id.example.com/token", Grant: resource.ClientCredentials, ClientID: "client",
		ClientSecretRef: &resource.SecretKeyRef{Name: "client", Key: "secret"},
	}}
	renewed := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "fetched-oauth2"}, Data: token("first value of fetched")}
	shop := p.third.endpoint("shop", p.project, "/a", "cred_rotated", "cred_unset", "cred_taken", "cred_deleted", "cred_fetched")
	again := p.third.endpoint("again", p.project, "/b", "cred_removed")
	c.Create(t, renewed, fetched, shop, again)
	for _, name := range []string{"rotated", "unset", "taken", "deleted", "fetched"} {
		p.awaitSent(t, "/a", "cred_"+name, "first value of "+name)
	}
	p.awaitSent(t, "/b", "cred_removed", "first value of removed")

	stream, err := p.send("/a/stream", "")
	if err != nil {
		t.Fatal(err)
	}
	kubetest.Change(t, c, secrets["rotated"], func(s *corev1.Secret) { s.Data["token"] = []byte("second value") })
	kubetest.Change(t, c, secrets["unset"], func(s *corev1.Secret) { s.Data = nil })
	kubetest.Change(t, c, shop, func(e *v1alpha1.ProxyEndpoint) {
		e.Spec.Credentials = []string{"cred_rotated", "cred_unset", "cred_deleted", "cred_fetched"}
	})
	c.Delete(t, objects[3])
	c.Delete(t, secrets["deleted"])
	kubetest.Change(t, c, renewed, func(s *corev1.Secret) { s.Data = token("second token") })
	c.Delete(t, again)
	p.awaitSent(t, "/a", "cred_rotated", "second value")
	p.awaitSent(t, "/a", "cred_fetched", "second token")
	for _, name := range []string{"unset", "taken", "deleted"} {
		p.awaitRefused(t, "/a", "cred_"+name, "credential_not_allowed")
	}
	p.awaitRefused(t, "/b", "", "destination_not_allowed")
	var stored corev1.Secret
	eventually.Succeeds(t, "the operator has stored the former values and uses", func() error {
		if err := c.Client.Get(t.Context(), values(c), &stored); err != nil {
			return err
		}
		if list := manifests.FormerOf(stored.Data); len(list) != 7 {
			return fmt.Errorf("%+v", list)
		}
		return nil
	})
	c.Create(t, p.third.endpoint("again", p.project, "/b"))
	p.awaitSent(t, "/b", "", "")

	hides := func(of string, resp *http.Response, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err != nil || !strings.Contains(string(text), "[redacted]") {
			t.Errorf("%s: %v: %q", of, err, text)
		}
		own := resp.Request.URL.Query().Get("url") == p.third.URL+"/b"
		for value := range p.third.kept.Range {
			// An endpoint hides the values that it could send, and no others.
			if value != "" && own == (value == "first value of removed") && strings.Contains(string(text), value.(string)) {
				t.Errorf("%s shows %q", of, value)
			}
		}
	}
	check := func(of string, p *proxy) {
		t.Helper()
		for _, path := range []string{"/a", "/b"} {
			resp, err := p.send(path, "")
			hides(of+path, resp, err)
		}
	}
	check("the replica", p)
	close(p.third.on)
	hides("the stream", stream, nil)

	late := &proxy{third: p.third, project: p.project, log: p.log}
	late.run(t, c, kube, nil)
	late.awaitReady(t)
	check("a replica of after the changes", late)
}
