package manifest

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/lectern-dev/lectern/proxy/resource"
)

// MaxFile is the largest size of a manifest file that [Load] and [Folder] accept, in bytes.
const MaxFile = 4 << 20

// Parse appends the objects in one file to o. The argument file is the file's name for faults. The error joins a
// [*Fault] for each document that cannot be parsed, and o then still gets the other documents. No fault contains any
// part of a Secret's values.
func Parse(o *Objects, file string, text []byte) error {
	var faults []error
	for _, d := range split(text) {
		if err := parseDocument(o, file, d); err != nil {
			faults = append(faults, err)
		}
	}
	return errors.Join(faults...)
}

// document is one YAML document of a file. It begins with an empty line for each earlier line of the file, so that its
// line numbers are those of the file.
type document []byte

// split returns the YAML documents of a file, which lines of "---" separate. It leaves out documents without content.
func split(text []byte) []document {
	var documents []document
	var current bytes.Buffer
	line, content := 0, false
	flush := func() {
		if content {
			documents = append(documents, bytes.Clone(current.Bytes()))
		}
		current.Reset()
		current.WriteString(strings.Repeat("\n", line))
		content = false
	}
	for l := range bytes.Lines(text) {
		line++
		trimmed := bytes.TrimSpace(l)
		if bytes.Equal(bytes.TrimRight(l, " \t\r\n"), []byte("---")) {
			flush()
			continue
		}
		if len(trimmed) > 0 && trimmed[0] != '#' {
			content = true
		}
		current.Write(l)
	}
	flush()
	return documents
}

// kind holds the fields that every document has.
type kind struct {
	APIVersion string `yaml:"apiVersion"`
	Kind       string `yaml:"kind"`
}

func parseDocument(o *Objects, file string, d document) error {
	var root yaml.Node
	if err := yaml.Unmarshal(d, &root); err != nil {
		return faultOf(file, "", err)
	}
	var k kind
	if err := root.Decode(&k); err != nil {
		return faultOf(file, "", err)
	}
	at := func(field string) Position { return Position{file, lineOf(&root, field)} }
	switch k.APIVersion + " " + k.Kind {
	case APIVersion + " Project":
		meta, spec, err := object[resource.ProjectSpec](d)
		if err != nil {
			return faultOf(file, k.Kind, err)
		}
		o.Projects = append(o.Projects, Project{meta, spec, at})
	case APIVersion + " Credential":
		meta, spec, err := object[resource.CredentialSpec](d)
		if err != nil {
			return faultOf(file, k.Kind, err)
		}
		o.Credentials = append(o.Credentials, Credential{Metadata: meta, Spec: spec, At: at})
	case APIVersion + " ProxyEndpoint":
		meta, spec, err := object[resource.ProxyEndpointSpec](d)
		if err != nil {
			return faultOf(file, k.Kind, err)
		}
		o.Endpoints = append(o.Endpoints, ProxyEndpoint{Metadata: meta, Spec: spec, At: at})
	case "v1 Secret":
		return parseSecret(o, file, d, at)
	default:
		return &Fault{Position: at("kind"), Reason: fmt.Sprintf(
			"apiVersion %q, kind %q; allowed: %s Project, Credential or ProxyEndpoint, v1 Secret", k.APIVersion, k.Kind, APIVersion)}
	}
	return nil
}

// object decodes a document of a kind that has a spec, and returns its metadata and spec. An unknown field is an error.
func object[S any](d document) (Metadata, S, error) {
	var doc struct {
		kind     `yaml:",inline"`
		Metadata Metadata  `yaml:"metadata"`
		Spec     S         `yaml:"spec"`
		Status   yaml.Node `yaml:"status"`
	}
	err := strict(d, &doc)
	return doc.Metadata, doc.Spec, err
}

func parseSecret(o *Objects, file string, d document, at func(string) Position) error {
	var doc struct {
		kind       `yaml:",inline"`
		Metadata   Metadata          `yaml:"metadata"`
		Type       string            `yaml:"type"`
		Immutable  bool              `yaml:"immutable"`
		Data       map[string]string `yaml:"data"`
		StringData map[string]string `yaml:"stringData"`
	}
	if err := strict(d, &doc); err != nil {
		return faultOf(file, "Secret", err)
	}
	s := Secret{Metadata: doc.Metadata, Data: map[string][]byte{}, At: at}
	for key, text := range doc.Data {
		v, err := base64.StdEncoding.DecodeString(strings.Map(dropSpace, text))
		if err != nil {
			// The decoder's error could contain a part of the value.
			return &Fault{Position: at("data"), Object: "Secret/" + doc.Metadata.Name, Reason: fmt.Sprintf("data: the value of %q is not base64", key)}
		}
		s.Data[key] = v
	}
	for key, text := range doc.StringData {
		s.Data[key] = []byte(text)
	}
	o.Secrets = append(o.Secrets, s)
	return nil
}

func dropSpace(r rune) rune {
	if r == '\n' || r == '\r' || r == ' ' {
		return -1
	}
	return r
}

// strict decodes a document into the value into, and returns an error if the document has a field that the kind does
// not have.
func strict(d document, into any) error {
	decoder := yaml.NewDecoder(bytes.NewReader(d))
	decoder.KnownFields(true)
	if err := decoder.Decode(into); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}

var (
	yamlLine     = regexp.MustCompile(`line (\d+): `)
	yamlField    = regexp.MustCompile(`field (\S+) not found in type .*`)
	yamlType     = regexp.MustCompile(` into \S+$`)
	yamlQuotes   = regexp.MustCompile("`[^`]*`|\"[^\"]*\"|'[^']*'|unknown anchor.*")
	yamlPrefixes = strings.NewReplacer("yaml: ", "", "unmarshal errors:", "", "\n", " ")
)

// faultOf turns the first error of the YAML decoder into a Fault with its line and text. It removes quotations from the
// text, because they may contain a Secret's value.
func faultOf(file, object string, err error) error {
	f := &Fault{Position: Position{File: file, Line: 1}, Object: object}
	text := err.Error()
	if list, ok := errors.AsType[*yaml.TypeError](err); ok && len(list.Errors) > 0 {
		text = list.Errors[0]
	}
	if m := yamlLine.FindStringSubmatch(text); m != nil {
		f.Position.Line, _ = strconv.Atoi(m[1]) // the expression only matches digits
		text = strings.Replace(text, m[0], "", 1)
	}
	text = strings.TrimSpace(yamlPrefixes.Replace(text))
	if m := yamlField.FindStringSubmatch(text); m != nil && object == "Secret" {
		f.Reason = "there is a field here that a Secret does not have" // its name may be a misplaced value
		return f
	} else if m != nil {
		f.Reason = fmt.Sprintf("there is no field %q here", m[1])
		return f
	}
	f.Reason = yamlQuotes.ReplaceAllString(yamlType.ReplaceAllString(text, ""), "…")
	return f
}

var segment = regexp.MustCompile(`([^.\[\]]+)|\[(\d+)\]`)

// lineOf returns the line of a field such as "spec.destinations[1].pattern", or of its closest existing parent.
func lineOf(root *yaml.Node, field string) int {
	at := root
	if at.Kind == yaml.DocumentNode && len(at.Content) > 0 {
		at = at.Content[0]
	}
	line := at.Line
	for _, m := range segment.FindAllStringSubmatch(field, -1) {
		var next *yaml.Node
		switch {
		case m[1] != "" && at.Kind == yaml.MappingNode:
			for i := 0; i+1 < len(at.Content); i += 2 {
				if at.Content[i].Value == m[1] {
					line, next = at.Content[i].Line, at.Content[i+1]
				}
			}
		case m[2] != "" && at.Kind == yaml.SequenceNode:
			if i, err := strconv.Atoi(m[2]); err == nil && i < len(at.Content) {
				next = at.Content[i]
				line = next.Line
			}
		}
		if next == nil {
			break
		}
		at = next
	}
	return line
}
