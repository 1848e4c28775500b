package openapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	yaml "github.com/oasdiff/yaml3"

	"github.com/lectern-dev/lectern/shared/testing/golden"
)

// TestJSONSaysTheSame checks that lectern.json equals lectern.yaml, with the names in the same order.
func TestJSONSaysTheSame(t *testing.T) {
	source, err := os.ReadFile("lectern.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var document yaml.Node
	if err := yaml.Unmarshal(source, &document); err != nil {
		t.Fatal(err)
	}
	var compact, want bytes.Buffer
	if err := writeJSON(&compact, document.Content[0]); err != nil {
		t.Fatal(err)
	}
	if err := json.Indent(&want, compact.Bytes(), "", "  "); err != nil {
		t.Fatal(err)
	}
	want.WriteByte('\n')
	golden.Check(t, "lectern.json", want.String())
}

// TestUnionNames checks that no union has the name of its discriminator. ogen names the constant of a variant after the
// variant and the union. The type of the variant's discriminator has the name of the variant and the property.
func TestUnionNames(t *testing.T) {
	source, err := os.ReadFile("lectern.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var description struct {
		Components struct {
			Schemas map[string]struct {
				Discriminator struct {
					PropertyName string `yaml:"propertyName"`
				}
			}
		}
	}
	if err := yaml.Unmarshal(source, &description); err != nil {
		t.Fatal(err)
	}
	unions := 0
	for name, schema := range description.Components.Schemas {
		property := schema.Discriminator.PropertyName
		if property != "" {
			unions++
		}
		if strings.EqualFold(name, property) {
			t.Errorf("ogen cannot compile the schema %s, whose discriminator is %s", name, property)
		}
	}
	if unions == 0 {
		t.Error("there is no union")
	}
}

// TestOneVersion checks that the description, the chart, its images and the packages have one version number.
func TestOneVersion(t *testing.T) {
	version := regexp.MustCompile(`(?m)^(?:  version|version|appVersion| *"version"): "?([^",\n]+)"?,?$`)
	numbers := map[string][]string{}
	for _, path := range []string{"lectern.yaml", "openapi-internal.yaml", "../../charts/lectern/Chart.yaml", "../../client/typescript/package.json", "../../services/console/web/package.json"} {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		found := version.FindAllStringSubmatch(string(content), -1)
		if len(found) == 0 {
			t.Errorf("%s has no version", path)
		}
		for _, m := range found {
			numbers[m[1]] = append(numbers[m[1]], path)
		}
	}
	if len(numbers) != 1 {
		t.Errorf("several versions: %v", numbers)
	}
}

// writeJSON writes a node of YAML as JSON.
func writeJSON(b *bytes.Buffer, n *yaml.Node) error {
	switch n.Kind {
	case yaml.MappingNode:
		b.WriteByte('{')
		for i := 0; i < len(n.Content); i += 2 {
			if i > 0 {
				b.WriteByte(',')
			}
			if err := writeText(b, n.Content[i].Value); err != nil {
				return err
			}
			b.WriteByte(':')
			if err := writeJSON(b, n.Content[i+1]); err != nil {
				return err
			}
		}
		b.WriteByte('}')
	case yaml.SequenceNode:
		b.WriteByte('[')
		for i, item := range n.Content {
			if i > 0 {
				b.WriteByte(',')
			}
			if err := writeJSON(b, item); err != nil {
				return err
			}
		}
		b.WriteByte(']')
	case yaml.ScalarNode:
		switch n.ShortTag() {
		case "!!str":
			return writeText(b, n.Value)
		case "!!int", "!!bool", "!!null":
			b.WriteString(n.Value)
		default:
			return fmt.Errorf("line %d: %q is a %s: quote it", n.Line, n.Value, n.ShortTag())
		}
	default:
		return fmt.Errorf("line %d: anchors and aliases are not used here", n.Line)
	}
	return nil
}

func writeText(b *bytes.Buffer, s string) error {
	encoder := json.NewEncoder(b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(s); err != nil {
		return err
	}
	b.Truncate(b.Len() - 1) // the line feed of json.Encoder
	return nil
}

func TestAssets(t *testing.T) {
	for _, tc := range []struct {
		name string
		ok   bool
	}{
		{"start.js", true}, {"scalar-1.72.1.js", true},
		{"", false}, {".", false}, {"..", false}, {"index.html", false}, {"scalar-1.72.1.js.gz", false}, {"LICENSE.scalar", false},
		{"../openapi.go", false}, {"../lectern.yaml", false}, {"a/start.js", false}, {"Start.js", false}, {"start.js\x00", false},
	} {
		a, ok := FindAsset(tc.name)
		if ok != tc.ok {
			t.Errorf("FindAsset(%q) = %v", tc.name, ok)
			continue
		}
		if !ok {
			continue
		}
		plain, err := a.Plain()
		if err != nil || len(plain) < 100 || !bytes.Contains(plain, []byte("createApiReference")) {
			t.Errorf("%s: %d bytes, %v", tc.name, len(plain), err)
		}
		if !bytes.Contains(Page(), []byte(`src="docs/`+tc.name+`"`)) {
			t.Errorf("the page does not load %s", tc.name)
		}
	}
}
