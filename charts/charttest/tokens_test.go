package charttest

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"

	"github.com/lectern-dev/lectern/shared/auth/tokens"
)

// identities turns on all that concerns tokens.
const identities = `
tokens:
  issuers:
    - {url: "https://id.example.com", audiences: [lectern, console], groupsClaim: groups}
    - {url: "https://dex.example.com", audiences: [lectern], ca: {configMap: dex}}
    - {url: "https://keycloak.example.com", audiences: [lectern], ca: {secret: keycloak, key: tls.crt}}
  cluster: {enabled: true, issuer: "https://kubernetes.default.svc"}
  internalIdentities: [{namespace: shop, serviceAccount: clock}, {issuer: "https://id.example.com", subject: clock}]
console: {signIn: {issuer: "https://id.example.com", clientId: console, scopes: openid groups, audience: lectern, origins: ["https://login.example.com", "https://graph.example.com"]}}
`

// TestTokens checks which settings each component gets for tokens: those that its program reads. The services that verify tokens
// also have the files that TOKEN_ISSUERS names, and no account's token but the one that is named there. docs/reference/settings.md,
// which is made from the programs, has each setting.
func TestTokens(t *testing.T) {
	const issuers = `[{"audiences":["lectern","console"],"groupsClaim":"groups","url":"https://id.example.com"},` +
		`{"audiences":["lectern"],"caFile":"/etc/lectern/issuers/1/ca.crt","url":"https://dex.example.com"},` +
		`{"audiences":["lectern"],"caFile":"/etc/lectern/issuers/2/ca.crt","url":"https://keycloak.example.com"},` +
		`{"audiences":["lectern"],"caFile":"/etc/lectern/issuers/cluster/ca.crt","tokenFile":"/etc/lectern/issuers/cluster/token","url":"https://kubernetes.default.svc"}]`
	want := map[string]map[string]string{
		"entries": {"TOKEN_ISSUERS": issuers}, "embeddables": {"TOKEN_ISSUERS": issuers}, "experiments": {"TOKEN_ISSUERS": issuers}, "proxy": {"TOKEN_ISSUERS": issuers},
		"region": {
			"TOKEN_ISSUERS":       issuers,
			"INTERNAL_IDENTITIES": `[{"issuer":"https://kubernetes.default.svc","subject":"system:serviceaccount:shop:clock"},{"issuer":"https://id.example.com","subject":"clock"}]`,
		},
		"operator": {"CLUSTER_ISSUER": "https://kubernetes.default.svc"},
		"console": {
			"CONSOLE_ISSUER": "https://id.example.com", "CONSOLE_CLIENT_ID": "console", "CONSOLE_SCOPES": "openid groups", "CONSOLE_AUDIENCE": "lectern",
			"CONSOLE_ISSUER_ORIGINS": "https://login.example.com,https://graph.example.com",
		},
		"edge": {}, "internal": {},
	}
	files := []string{"1/ca.crt", "2/ca.crt", "cluster/ca.crt", "cluster/token"}
	known, err := os.ReadFile("../../docs/reference/settings.md")
	if err != nil {
		t.Fatal(err)
	}
	without, with := render(t, ""), render(t, identities)
	for _, name := range components() {
		before := environmentOf(container(t, one[*apps.Deployment](t, without, "lectern-"+name), name))
		pod := one[*apps.Deployment](t, with, "lectern-"+name).Spec.Template.Spec
		got := environmentOf(pod.Containers[0])
		maps.DeleteFunc(got, func(variable, value string) bool { return before[variable] == value })
		if diff := cmp.Diff(want[name], got); diff != "" {
			t.Errorf("%s: settings (-want +got):\n%s", name, diff)
		}
		for variable := range got {
			if !strings.Contains(string(known), "| `"+variable+"` |") {
				t.Errorf("%s gets %s, which no program reads", name, variable)
			}
		}
		var has []string
		if value := got["TOKEN_ISSUERS"]; value != "" {
			var parsed tokens.Issuers
			if err := parsed.UnmarshalText([]byte(value)); err != nil {
				t.Errorf("%s: TOKEN_ISSUERS: %v", name, err)
			}
			has = files
		}
		if diff := cmp.Diff(has, issuerFiles(pod)); diff != "" {
			t.Errorf("%s: files of issuers (-want +got):\n%s", name, diff)
		}
		if automount := *pod.AutomountServiceAccountToken; automount != (name == "operator" || name == "proxy") {
			t.Errorf("%s: automountServiceAccountToken is %v", name, automount)
		}
	}
}

// issuerFiles returns the files that a pod has below /etc/lectern/issuers, sorted.
func issuerFiles(pod core.PodSpec) []string {
	var files []string
	for _, m := range pod.Containers[0].VolumeMounts {
		if m.MountPath != "/etc/lectern/issuers" {
			continue
		}
		for _, source := range pod.Volumes[slices.IndexFunc(pod.Volumes, func(v core.Volume) bool { return v.Name == m.Name })].Projected.Sources {
			switch {
			case source.ServiceAccountToken != nil:
				files = append(files, source.ServiceAccountToken.Path)
			case source.ConfigMap != nil:
				files = append(files, source.ConfigMap.Items[0].Path)
			case source.Secret != nil:
				files = append(files, source.Secret.Items[0].Path)
			}
		}
	}
	slices.Sort(files)
	return files
}
