package charttest

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// manifest has the fields that all tested manifests share.
type manifest struct {
	meta.TypeMeta
	Metadata   struct{ Name, Namespace string }
	StringData map[string]string
}

// host finds the hosts of URLs with credentials.
var host = regexp.MustCompile(`@([^:/\s]+):\d+/`)

// TestExampleManifests checks that each object has a kind and a name, and that none occurs twice. Hosts in Secrets are
// those of the databases in the same example. Secrets have exactly the keys that the chart reads.
func TestExampleManifests(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(chartFolder, "examples", "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	files = slices.DeleteFunc(files, func(f string) bool { return strings.HasPrefix(filepath.Base(f), "values-") })
	if len(files) < 5 {
		t.Fatalf("%d examples of manifests; want 5 or more", len(files))
	}
	files = append(files, "../../cli/internal/databases/testdata/secrets.yaml") // made by lectern databases
	asked := secretsAskedFor(t)
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			there, services := map[string]bool{}, map[string]bool{}
			var secrets []manifest
			for document := range strings.SplitSeq("\n"+string(text), "\n---") {
				var m manifest
				if err := yaml.Unmarshal([]byte(document), &m); err != nil {
					t.Fatalf("%v in:\n%s", err, document)
				}
				id := fmt.Sprintf("%s %s/%s", m.Kind, m.Metadata.Namespace, m.Metadata.Name)
				if m.APIVersion == "" || m.Kind == "" || m.Metadata.Name == "" || there[id] {
					t.Errorf("says not what it is, or is there twice: %s", id)
				}
				there[id] = true
				switch m.Kind {
				case "Cluster": // CloudNativePG makes a service for each way in
					for _, way := range []string{"-rw", "-ro", "-r"} {
						services[m.Metadata.Name+way] = true
					}
				case "Pooler":
					services[m.Metadata.Name] = true
				case "Secret":
					secrets = append(secrets, m)
				}
			}
			for _, s := range secrets {
				for key, value := range s.StringData {
					if keys, ok := asked[s.Metadata.Name]; ok {
						if _, ok := keys[key]; !ok {
							t.Errorf("%s has %s, which nothing asks for", s.Metadata.Name, key)
						}
					}
					for _, m := range host.FindAllStringSubmatch(value, -1) {
						if len(services) > 0 && !services[m[1]] {
							t.Errorf("%s: %s names %s, which no database beside it is called", s.Metadata.Name, key, m[1])
						}
					}
				}
				for key, optional := range asked[s.Metadata.Name] {
					if !optional && s.StringData[key] == "" {
						t.Errorf("%s lacks %s", s.Metadata.Name, key)
					}
				}
			}
		})
	}
}

// secretsAskedFor returns the keys of each Secret that the chart reads, and whether each may be absent.
func secretsAskedFor(t *testing.T) map[string]map[string]bool {
	t.Helper()
	asked := map[string]map[string]bool{}
	for _, spec := range podSpecs(render(t, "retention: {enabled: true}\nsync: {copies: {warehouse: {project: pr_demo}, lake: {project: pr_demo}}}")) {
		for _, c := range slices.Concat(spec.InitContainers, spec.Containers) {
			for _, e := range c.Env {
				if e.ValueFrom == nil || e.ValueFrom.SecretKeyRef == nil {
					continue
				}
				ref := e.ValueFrom.SecretKeyRef
				if asked[ref.Name] == nil {
					asked[ref.Name] = map[string]bool{}
				}
				optional, known := asked[ref.Name][ref.Key]
				asked[ref.Name][ref.Key] = (optional || !known) && ref.Optional != nil && *ref.Optional
			}
		}
	}
	return asked
}
