package charttest

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	core "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// TestSyncExamples checks that the manifests of an example make the Secrets that its copy reads, with the keys that it
// reads.
func TestSyncExamples(t *testing.T) {
	for _, name := range []string{"postgres", "s3", "push"} {
		t.Run(name, func(t *testing.T) {
			values, err := os.ReadFile(filepath.Join(chartFolder, "examples", "values-sync-"+name+".yaml"))
			if err != nil {
				t.Fatal(err)
			}
			read := map[string]string{} // the keys of each Secret; empty for all
			for object, spec := range podSpecs(render(t, string(values))) {
				if !strings.HasPrefix(object, "lectern-sync-") {
					continue
				}
				for _, e := range spec.Containers[0].Env {
					if e.ValueFrom != nil {
						secret, key := e.ValueFrom.SecretKeyRef.Name, " "+e.ValueFrom.SecretKeyRef.Key
						read[secret] = strings.TrimSuffix(read[secret], key) + key
					}
				}
				for _, from := range spec.Containers[0].EnvFrom {
					read[from.SecretRef.Name] = ""
				}
			}
			text, err := os.ReadFile(filepath.Join(chartFolder, "examples", "sync-"+name+".yaml"))
			if err != nil {
				t.Fatal(err)
			}
			made := map[string]string{}
			for document := range strings.SplitSeq("\n"+string(text), "\n---") {
				var m struct {
					manifest
					Spec struct {
						Scopes []string
						Secret struct{ Name string }
					}
				}
				if err := yaml.Unmarshal([]byte(document), &m); err != nil {
					t.Fatal(err)
				}
				switch m.Kind {
				case "APIKey":
					made[m.Spec.Secret.Name] = " api-key"
					if !slices.Equal(m.Spec.Scopes, []string{"entries:read", "embeddables:read", "experiments:read"}) && name != "push" {
						t.Errorf("the key may %q; want that it may read all, and nothing more", m.Spec.Scopes)
					}
				case "Secret":
					made[m.Metadata.Name] = ""
					for _, key := range []string{"LECTERN_SYNC_TO", "LECTERN_SYNC_SECRET", "LECTERN_SYNC_STATE"} {
						if _, ok := m.StringData[key]; ok {
							made[m.Metadata.Name] += " " + key
						}
					}
				}
			}
			if len(read) < 2 || !maps.Equal(read, made) {
				t.Errorf("the copy reads %v, and the manifests make %v", read, made)
			}
		})
	}
}

// TestSyncMasks checks that a copy and its verification leave out and hash the same, and read the same secret.
func TestSyncMasks(t *testing.T) {
	const values = `
sync:
  copies:
    shop: {project: pr_demo, without: [contact_id, "entry_data.a: b"], hash: [entry_data.email], verify: {schedule: "0 3 * * 0"}}
    all: {project: pr_demo}
`
	n := 0
	for object, spec := range podSpecs(render(t, values)) {
		c := spec.Containers[0]
		secret := slices.ContainsFunc(c.Env, func(e core.EnvVar) bool {
			return e.Name == "LECTERN_HASH_SECRET" && e.ValueFrom.SecretKeyRef.Name == "lectern-sync-shop"
		})
		masks := slices.DeleteFunc(slices.Clone(c.Args), func(arg string) bool {
			return !strings.HasPrefix(arg, "--without") && !strings.HasPrefix(arg, "--hash")
		})
		switch {
		case strings.HasPrefix(object, "lectern-sync-shop"):
			n++
			if want := []string{"--without=contact_id", "--without=entry_data.a: b", "--hash=entry_data.email"}; !secret || !slices.Equal(masks, want) {
				t.Errorf("%s: secret %v, %q", object, secret, masks)
			}
		case secret || len(masks) > 0:
			t.Errorf("%s: secret %v, %q", object, secret, masks)
		}
	}
	if n != 2 {
		t.Errorf("%d pods of the copy; want the copy and its verification", n)
	}
}
