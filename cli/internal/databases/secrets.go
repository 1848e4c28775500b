package databases

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"go.yaml.in/yaml/v3"
)

// Secrets are the contents of Kubernetes Secrets: the value of each key, by the name of the Secret and the key.
type Secrets map[string]map[string]string

// manifest is a Kubernetes Secret, or the list of Secrets that kubectl get prints.
type manifest struct {
	APIVersion string `yaml:"apiVersion"`
	Kind       string `yaml:"kind"`
	Metadata   struct {
		Name string `yaml:"name"`
	} `yaml:"metadata"`
	StringData map[string]string `yaml:"stringData,omitempty"`
	Data       map[string]string `yaml:"data,omitempty"` // base64
	Items      []manifest        `yaml:"items,omitempty"`
}

// ReadSecrets reads the Secrets of a release as [Secrets.Manifests] or kubectl get prints them, in YAML or JSON. Any
// other object is an error.
func ReadSecrets(text []byte, release string) (Secrets, error) {
	all := Secrets{}
	documents := yaml.NewDecoder(bytes.NewReader(text))
	for {
		var m manifest
		err := documents.Decode(&m)
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, errors.New("these are no manifests of Kubernetes") // err may quote a password
		}
		objects := []manifest{m}
		if m.Kind == "List" {
			objects = m.Items
		}
		for _, m := range objects {
			if m.Kind != "Secret" || !slices.Contains(SecretNames(release), m.Metadata.Name) {
				return nil, fmt.Errorf("the %s %q is none of the release's Secrets", cmp.Or(m.Kind, "object"), m.Metadata.Name)
			}
			content := map[string]string{}
			for key, encoded := range m.Data {
				value, err := base64.StdEncoding.DecodeString(encoded)
				if err != nil {
					return nil, fmt.Errorf("the key %s of the Secret %s is not base64", key, m.Metadata.Name)
				}
				content[key] = string(value)
			}
			maps.Copy(content, m.StringData)
			all[m.Metadata.Name] = content
		}
	}
}

// Manifests returns the Secrets as documents of YAML, sorted by name, for kubectl apply.
func (s Secrets) Manifests() ([]byte, error) {
	var text bytes.Buffer
	documents := yaml.NewEncoder(&text)
	documents.SetIndent(2)
	for _, name := range slices.Sorted(maps.Keys(s)) {
		m := manifest{APIVersion: "v1", Kind: "Secret", StringData: s[name]}
		m.Metadata.Name = name
		if err := documents.Encode(m); err != nil {
			return nil, err
		}
	}
	return text.Bytes(), documents.Close()
}
