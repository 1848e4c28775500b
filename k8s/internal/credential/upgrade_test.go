package credential

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	noopmetric "go.opentelemetry.io/otel/metric/noop"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lectern-dev/lectern/k8s/api/v1alpha1"
	"github.com/lectern-dev/lectern/k8s/internal/controller"
	"github.com/lectern-dev/lectern/k8s/internal/tokenendpoint"
	"github.com/lectern-dev/lectern/k8s/testing/kubetest"
	"github.com/lectern-dev/lectern/proxy/resource"
	"github.com/lectern-dev/lectern/shared/renewal"
	"github.com/lectern-dev/lectern/shared/testing/golden"
)

func TestMain(m *testing.M) { kubetest.Main(m) }

// TestUpgrades checks that the operator goes on with the Secret of a fetched token of each released version. It requests no
// token before the next one is due, and then uses the stored refresh token.
func TestUpgrades(t *testing.T) {
	t.Parallel()
	c := kubetest.Start(t)
	now := time.Date(2026, 11, 29, 6, 0, 0, 0, time.UTC)
	object := &v1alpha1.Credential{ObjectMeta: metav1.ObjectMeta{Name: "crm"}, Spec: resource.CredentialSpec{
		ProjectID: "pr_1", Environment: "prod", ID: "cred_crm", ValueFrom: resource.ValueSource{OAuth2: &resource.OAuth2{
			TokenURL: "https://id.example.com/token", Grant: resource.RefreshToken, ClientID: "client",
			ClientSecretRef: &resource.SecretKeyRef{Name: "client", Key: "secret"}, RefreshTokenRef: &resource.SecretKeyRef{Name: "client", Key: "refresh"},
		}},
	}}
	c.Create(t, object, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "client"}, StringData: map[string]string{"secret": "a canary", "refresh": "first"}})
	tokens, err := newTokens(controller.Common{Meter: noopmetric.NewMeterProvider(), Now: func() time.Time { return now }}, c.Client, &tokenendpoint.Client{})
	if err != nil {
		t.Fatal(err)
	}
	request, _, err := tokens.request(t.Context(), object)
	if err != nil {
		t.Fatal(err)
	}
	spec := specOf(request)
	own := func(t *testing.T) *corev1.Secret {
		t.Helper()
		s, err := tokens.own(t.Context(), object)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	golden.EachVersion(t, "token.json", func() string {
		step := renewal.Plan(renewal.Plan(renewal.State{}, now, spec, nil).Store, now, spec, &renewal.Answer{Refresh: "refresh-1", Life: time.Hour})
		tokens.unwritten[client.ObjectKeyFromObject(object)] = result{object.UID, state{State: step.Store}, "token-1"}
		if err := tokens.writeUnwritten(t.Context(), object); err != nil {
			t.Fatal(err)
		}
		s := own(t)
		text, err := json.MarshalIndent(corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: s.Name, Labels: s.Labels, OwnerReferences: s.OwnerReferences}, Type: s.Type, Data: s.Data}, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		return strings.ReplaceAll(string(text), string(object.UID), "UID") + "\n"
	}, func(t *testing.T, content string) {
		stored := &corev1.Secret{}
		if err := json.Unmarshal([]byte(strings.ReplaceAll(content, `"UID"`, `"`+string(object.UID)+`"`)), stored); err != nil {
			t.Fatal(err)
		}
		c.Create(t, stored)
		verdict, wait, err := tokens.keep(t.Context(), object)
		if err != nil || verdict.Reason != v1alpha1.ReasonValid || wait != 40*time.Minute {
			t.Errorf("%+v, %v, %v", verdict, wait, err)
		}
		s := own(t)
		if state := stateOf(s); state.First != spec.First || string(s.Data[refreshTokenKey]) != "refresh-1" {
			t.Errorf("the stored refresh token does not belong to the Credential: %+v", state)
		}
		c.Delete(t, stored)
	})
}
